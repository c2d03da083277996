"""Projects."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.project import ProjectAnswer, ProjectPage, ProjectRequest


class Projects(Noun):
    in_project = False

    def page(self, *, organisation: str = "", after: str = "", limit: int = PAGE) -> ProjectPage:
        return self._get(ProjectPage, "projects", organisation=organisation, after=after, limit=limit)

    def list(self, *, organisation: str = "") -> tuple[ProjectAnswer, ...]:
        return pages(lambda after: self.page(organisation=organisation, after=after))

    def get(self, ref: str) -> ProjectAnswer:
        return self._get(ProjectAnswer, "projects", ref)

    def create(
        self, request: ProjectRequest, *, organisation: str = "", idempotency_key: str = ""
    ) -> ProjectAnswer:
        return self._create(
            ProjectAnswer,
            "projects",
            body=request,
            idempotency_key=idempotency_key,
            organisation=organisation,
        )

    def delete(self, ref: str) -> None:
        self._send("DELETE", "projects", ref)
