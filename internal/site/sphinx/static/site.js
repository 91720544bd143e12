// The theme lacks names for the two navigations, a heading on the search page, and focus on parts that are wider than
// the window, without which the arrow keys do not scroll them.
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
