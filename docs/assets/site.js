// Names and keyboard focus that the theme leaves out.
document$.subscribe(() => {
  document.querySelector(".md-search").setAttribute("aria-label", "Search")
  for (const id of ["__search", "__drawer"]) {
    document.getElementById(id)?.setAttribute("aria-label", id === "__search" ? "Open the search" : "Open the navigation")
  }
  for (const scroller of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
    scroller.tabIndex = 0
  }
})
