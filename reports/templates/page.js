// The page is complete without this script. It adds zooming of the timeline, a
// jump to the first violation, and steps that highlight their marker.
(function () {
  'use strict';
  var svg = document.querySelector('svg.timeline');
  if (!svg) return;
  var d = svg.dataset, left = +d.left, right = +d.right, min = +d.from, max = +d.until;
  var from = min, until = max, parts = svg.querySelectorAll('.t');
  var clip = svg.querySelector('#p-clip rect');
  function x(t) { return left + (right - left) * (t - from) / (until - from); }
  function move(e) {
    var a = +e.dataset.a, b = e.dataset.b, xa = x(a), dx = +(e.dataset.dx || 0);
    var out = xa < left - 1 || xa > right + 1;
    switch (e.tagName) {
      case 'rect':
        var l = Math.max(left, xa), r = Math.min(right, x(+b));
        e.setAttribute('x', l);
        e.setAttribute('width', r < l ? 0 : Math.max(r - l, xa >= left && xa <= right ? 0.8 : 0));
        return;
      case 'line':
        if (b !== undefined) {
          e.setAttribute('x1', Math.max(left, Math.min(right, xa)));
          e.setAttribute('x2', Math.max(left, Math.min(right, x(+b))));
          return;
        }
        e.setAttribute('x1', xa);
        e.setAttribute('x2', xa + +(e.dataset.dx2 || 0));
        break;
      case 'text':
        e.setAttribute('x', xa + dx);
        break;
      default:
        e.setAttribute('transform', 'translate(' + (xa + dx) + ' ' + e.dataset.y + ')');
    }
    e.style.display = out ? 'none' : '';
  }
  function grid() {
    var g = svg.querySelector('.grid'), old = g.querySelectorAll('.extra'), i;
    for (i = 0; i < old.length; i++) old[i].remove();
    if (until - from > 0.6 * (max - min)) return;
    var rough = (until - from) / 8, unit = Math.pow(10, Math.floor(Math.log10(rough)));
    var step = unit * (rough / unit > 5 ? 10 : rough / unit > 2 ? 5 : 2);
    for (var t = Math.ceil(from / step) * step; t <= until; t += step) {
      var l = document.createElementNS(svg.namespaceURI, 'text');
      l.setAttribute('class', 'axis extra');
      l.setAttribute('x', x(t));
      l.setAttribute('y', +g.dataset.y2 + 16);
      l.textContent = (t / 1e6).toFixed(Math.max(0, Math.min(6, Math.ceil(6 - Math.log10(step))))) + ' s';
      g.appendChild(l);
    }
    var fixed = g.querySelectorAll('text:not(.extra)');
    for (i = 0; i < fixed.length; i++) fixed[i].style.display = 'none';
  }
  function show(a, b) {
    var least = Math.max(20, (max - min) / 1e5), width = Math.min(Math.max(b - a, least), max - min);
    from = Math.max(min, Math.min(a, max - width));
    until = from + width;
    svg.classList.toggle('zoomed', width < max - min);
    for (var i = 0; i < parts.length; i++) move(parts[i]);
    grid();
  }
  function zoom(k, at) { show(at - (at - from) * k, at + (until - at) * k); }
  function time(ev) {
    var box = svg.getBoundingClientRect(), px = (ev.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    return from + (until - from) * (px - left) / (right - left);
  }
  function jump() {
    var band = svg.querySelector('.band');
    if (!band) return;
    var a = +band.dataset.a, b = +band.dataset.b, margin = Math.max((b - a) * 0.6, (max - min) / 200);
    show(a - margin, b + margin);
    svg.scrollIntoView({block: 'center'});
  }
  var act = {
    'in': function () { zoom(0.6, (from + until) / 2); },
    'out': function () { zoom(1 / 0.6, (from + until) / 2); },
    all: function () { show(min, max); },
    jump: jump
  };
  var tools = document.querySelector('.tools');
  tools.hidden = false;
  tools.addEventListener('click', function (ev) {
    var todo = ev.target.dataset && act[ev.target.dataset.do];
    if (todo) todo();
  });
  svg.addEventListener('wheel', function (ev) {
    if (!ev.ctrlKey && !ev.metaKey) return; // a plain wheel scrolls the page
    ev.preventDefault();
    zoom(ev.deltaY > 0 ? 1.25 : 0.8, time(ev));
  }, {passive: false});
  var dragged = null;
  svg.addEventListener('pointerdown', function (ev) {
    if (until - from < max - min) { dragged = time(ev); svg.setPointerCapture(ev.pointerId); }
  });
  svg.addEventListener('pointermove', function (ev) {
    if (dragged === null) return;
    var by = dragged - time(ev);
    show(from + by, until + by);
  });
  svg.addEventListener('pointerup', function () { dragged = null; });
  svg.addEventListener('dblclick', act.all);
  if (clip) clip.setAttribute('width', right + 16);
  var box = svg.closest('.wide'), red = svg.querySelector('.band');
  if (red && box.scrollWidth > box.clientWidth) { // on a narrow screen the violation is seen first
    var area = red.getBoundingClientRect(), seen = box.getBoundingClientRect();
    box.scrollLeft = area.left - seen.left - 24 + Math.min(0, (area.width - seen.width) / 2);
  }
  var steps = document.querySelectorAll('.steps li');
  for (var i = 0; i < steps.length; i++) {
    (function (li, n) {
      function highlight(on) {
        var m = svg.querySelector('.marker[data-n="' + n + '"]');
        if (m) { m.style.stroke = on ? '#e69f00' : ''; m.style.strokeWidth = on ? 2 : ''; }
      }
      li.addEventListener('mouseenter', function () { highlight(true); });
      li.addEventListener('mouseleave', function () { highlight(false); });
    })(steps[i], steps[i].id.slice(4));
  }
})();
