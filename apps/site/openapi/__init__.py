"""The description of the API in OpenAPI, at `/api/schema`: one module for each group of routes."""
