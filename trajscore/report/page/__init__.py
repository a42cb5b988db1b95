"""A report as a page to decide from: a module and a template for each section."""
