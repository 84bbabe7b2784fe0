"""Routes about jobs: fits, imports and new models, in the background."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from .parts import CollectionName, InCollection, TheService, router
from .schemas import Job, JobList

__all__ = ["routes"]

routes = router("jobs", "/collections/{name}")

JobId = Annotated[str, Path(description="The id of a job.", max_length=100)]


@routes.get("/jobs")
async def list_jobs(collection: InCollection, service: TheService) -> JobList:
    """List the jobs of a collection, the newest last."""
    return JobList.model_construct(jobs=[Job.of(job) for job in service.jobs.list(collection.name)])


@routes.get("/jobs/{job}")
async def get_job(job: JobId, name: CollectionName, service: TheService) -> Job:
    """Say how far a job is."""
    return Job.of(service.jobs.get(name, job))


@routes.post("/jobs/{job}/cancel")
async def cancel_job(job: JobId, name: CollectionName, service: TheService) -> Job:
    """Ask a job to stop."""
    return Job.of(service.jobs.cancel(name, job))
