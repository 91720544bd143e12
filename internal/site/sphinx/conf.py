"""The configuration of Sphinx for the site; internal/site writes the pages."""
project = "lockchaos"
html_title = "lockchaos"
extensions = ["myst_parser", "sphinx.ext.githubpages"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_use_index = False
smartquotes = False
html_show_search_summary = False  # it would request the text of pages, which file:// refuses
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
highlight_language = "text"


def setup(app):
    """Pages of stories are not in the navigation, so it is the same on all of them, and is generated once."""
    made = {}

    def navigation(_app, page, _template, context, _doctree):
        make = context.get("toctree")
        if page.startswith("stories/") and page.count("/") == 2 and make:
            context["toctree"] = lambda **options: made.get("toctree") or made.setdefault("toctree", make(**options))

    app.connect("html-page-context", navigation, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
