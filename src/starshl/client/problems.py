"""A problem that the service answers with."""

from __future__ import annotations

from typing import Any

import httpx

__all__ = ["ServiceProblem", "check_answer"]


class ServiceProblem(RuntimeError):
    """The service refused a request.

    Attributes
    ----------
    status : int, of HTTP
    kind : str, such as "not-found"
    detail : str, what is wrong and what to do
    request_id : str, to find the request in the log of the service
    errors : list of dict, the parts of the request that are wrong
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.kind = str(problem.get("type", "")).rpartition("/")[2]
        self.detail = str(problem.get("detail", "The service gave no details."))
        self.request_id = str(problem.get("request_id", ""))
        self.errors = list(problem.get("errors", ()))
        super().__init__(f"{self.detail} (status {status}, request {self.request_id or 'unknown'})")


def check_answer(response: httpx.Response) -> None:
    """Raise the problem in an answer, if there is one."""
    if response.is_success:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    raise ServiceProblem(response.status_code, problem if isinstance(problem, dict) else {})
