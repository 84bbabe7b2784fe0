"""The service over HTTP: routes, access, limits, problems, on FastAPI and uvicorn."""
