// What the theme leaves to its users: a name for the navigation, a heading on the page of the search, and focus, so that
// the arrow keys scroll what is wider than the window.
document.querySelector('.sidebar-drawer')?.setAttribute('aria-label', 'Site');
document.querySelector('.toc-drawer')?.setAttribute('aria-label', 'This page');
if (!document.querySelector('h1')) {
  document.querySelector('article')?.insertAdjacentHTML('afterbegin', '<h1>Search</h1>');
}
const focusWide = () => document.querySelectorAll('pre, .table-wrapper').forEach((e) => {
  e.toggleAttribute('tabindex', e.scrollWidth > e.clientWidth);
  if (e.hasAttribute('tabindex')) e.tabIndex = 0;
});
focusWide();
addEventListener('resize', focusWide);
