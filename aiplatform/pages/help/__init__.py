"""The help site at `/help/`: Markdown of aiplatform/docs/site, built by MkDocs, served as files.

`reference` and `commands` generate pages from the code, `build` makes the site,
`hooks` is what MkDocs calls meanwhile, `site` finds the built files and `views` serves them. Only `build` and `hooks`
import MkDocs; no process that serves requests imports them.
"""
