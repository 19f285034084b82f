"""The report: what Runs came to, page by page, as static files or rendered when somebody asks.

`gather` reads an output into Facts; `site` knows every page's name and renders any of them; `build` writes them all.
Nothing is loaded from elsewhere: charts and sorting come from vendor/, with their licences.
"""
