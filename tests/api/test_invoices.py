"""Invoices over the API: issued once, and sent as HTML or PDF to those who may see bills."""

from tests.api.asking import ApiServer, Tenants
from tests.api.test_idempotency import month_that_is_over


def test_invoice_as_html_and_pdf(server: ApiServer, tenants: Tenants) -> None:
    query, operator = f"?project={tenants.ids['project']}", tenants.keys["operator"]
    month = month_that_is_over(server)
    made = server.ask("POST", f"/v1/invoices{query}", operator, body={"month": month})
    assert made.status == 201
    assert made.json["open_micros"] == made.json["due_micros"]
    page = server.ask("GET", f"/v1/invoices/{month}{query}", operator)
    assert (page.status, page.headers["content-type"]) == (200, "text/html")
    assert made.json["number"].encode() in page.body
    paper = server.ask("GET", f"/v1/invoices/{month}/pdf{query}", operator)
    assert (paper.status, paper.headers["content-type"]) == (200, "application/pdf")
    assert paper.body.startswith(b"%PDF-")
    assert server.ask("GET", f"/v1/invoices/2020-01/pdf{query}", operator).code == "not_found"


def test_characters_missing_in_the_pdf_fonts_are_refused(server: ApiServer, tenants: Tenants) -> None:
    query, operator = f"?project={tenants.ids['project']}", tenants.keys["operator"]
    profile = server.ask("GET", f"/v1/billing{query}", operator).json
    kept = {name: profile[name] for name in ("currency", "pays", "tax_name", "tax_basis_points")}
    assert server.ask("PUT", f"/v1/billing{query}", operator, body={**kept, "customer": "서울"}).status == 200
    month = month_that_is_over(server)
    server.ask("POST", f"/v1/invoices{query}", operator, body={"month": month})
    refused = server.ask("GET", f"/v1/invoices/{month}/pdf{query}", operator)
    assert refused.code == "refused"
    assert server.ask("GET", f"/v1/invoices/{month}{query}", operator).status == 200


def test_invoice_names_the_organisation_and_preview_has_no_number(
    server: ApiServer, tenants: Tenants
) -> None:
    query, owner = f"?project={tenants.ids['project']}", tenants.keys["owner"]
    page = server.ask("GET", f"/v1/invoice-preview{query}", owner)
    assert page.status == 200
    assert b"PREVIEW" in page.body
    assert b"<h2>For</h2>acme</div>" in page.body
    paper = server.ask("GET", f"/v1/invoice-preview/pdf{query}", owner)
    assert paper.body.startswith(b"%PDF-")
    assert server.ask("GET", f"/v1/invoices{query}", owner).json["items"] == []
