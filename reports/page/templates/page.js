// The page is complete without this script. With it, the picture shows any violation, key and part of the run, and the
// page lists every operation. The data is in #data: JSON, compressed with gzip, in base64; see browse.go.
(function () {
  'use strict';
  var svg = document.querySelector('svg.timeline'), source = document.getElementById('data');
  var D, x0, x1, from, until, key, chosen, wanted = -1, cursor = -1, spot = -1, diagram, moment = -1, playing = 0, W = 1200, LEFT = 168, RIGHT = 1184;
  var OK = 2, FAIL = 3, INFO = 4; // outcomes, as history.Type
  if (!svg) return;
  var defs = svg.querySelector('defs').outerHTML, wide = svg.closest('.wide');
  var band = svg.querySelector('.band');
  if (band && wide.scrollWidth > wide.clientWidth) { // on a narrow screen the violation is seen first
    scrollToBand();
  }
  function scrollToBand() {
    var area = band.getBoundingClientRect(), seen = wide.getBoundingClientRect();
    var most = wide.scrollWidth - wide.clientWidth;
    var reach = Math.max(80, seen.width - area.width - 100); // the steps before it for which there is room, too
    var first = [].slice.call(svg.querySelectorAll('.lead')).reduce(function (first, lead) {
      var at = lead.getBoundingClientRect().left;
      return area.left - at < reach ? Math.min(first, at) : first;
    }, area.left);
    var before = Math.max(80 + area.left - first, (seen.width - area.width) / 2); // 80: the names of the rows
    var at = Math.max(0, Math.min(most, area.left - seen.left - before));
    var dots = [].slice.call(svg.querySelectorAll('.marker .dot')).map(function (dot) {
      var box = dot.getBoundingClientRect();
      return {left: box.left - seen.left - 1, right: box.right - seen.left + 1};
    });
    function cuts(edge) { return dots.some(function (dot) { return dot.left < edge && edge < dot.right; }); }
    for (var i = 0; i <= 120; i++) { // the nearest place at which no marker is cut
      var near = at + (i % 2 ? -1 : 1) * Math.ceil(i / 2);
      if (near < 0 || near > most || cuts(near) || cuts(near + wide.clientWidth)) continue;
      at = near;
      break;
    }
    wide.scrollLeft = at;
  }
  // On a narrow screen the names of the rows stay in sight, over the picture.
  function pin() {
    var old = svg.querySelector('.pins'), scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    var at = wide.scrollLeft * scale;
    if (old) old.remove();
    if (at >= 60) names(at);
    follow(at);
  }
  function names(at) {
    var rows = [].slice.call(svg.querySelectorAll('text.row')), pins = '';
    var groups = [].slice.call(svg.querySelectorAll('text.group')).filter(function (g) {
      return !rows.some(function (r) { return Math.abs(r.getAttribute('y') - g.getAttribute('y')) < 12; });
    });
    rows.concat(groups).forEach(function (t) {
      var box = t.getBBox();
      if (box.x >= at) return; // it is in sight itself
      pins += '<rect x="0" y="' + (box.y - 1) + '" width="' + (box.width + 8) + '" height="' + (box.height + 2) + '" rx="3"/>' +
        '<text x="4" y="' + t.getAttribute('y') + '" class="' + (t.classList.contains('group') ? 'group' : 'pinned') + '">' +
        t.innerHTML + '</text>';
    });
    svg.insertAdjacentHTML('beforeend', '<g class="pins" aria-hidden="true" transform="translate(' + at + ' 0)">' + pins + '</g>');
  }
  // The label of a bar that begins out of sight moves to where the bar is in sight, clear of names and markers. A label
  // that a name covers is hidden if there is no room for it.
  function follow(at) {
    var pins = [].slice.call(svg.querySelectorAll('.pins rect')).map(function (p) { return p.getBBox(); });
    var marks = [].slice.call(svg.querySelectorAll('g[transform]')).map(function (g) {
      return g.getAttribute('transform').match(/[\d.]+/g).map(Number);
    });
    svg.querySelectorAll('text.in').forEach(function (t) {
      var home = t.dataset.x = t.dataset.x || t.getAttribute('x'), bar = t.previousElementSibling, edge = at, right = 0;
      t.setAttribute('x', home);
      t.style.visibility = '';
      var box = t.getBBox();
      pins.forEach(function (p) {
        if (p.y < box.y + box.height && box.y < p.y + p.height) edge = Math.max(edge, at + p.width);
      });
      if (box.x >= edge) return; // it is in sight
      if (bar && bar.nodeName === 'rect' && +bar.getAttribute('x') <= box.x) right = +bar.getAttribute('x') + +bar.getAttribute('width');
      marks.forEach(function (m) {
        if (m[0] > edge && m[1] > box.y - 9 && m[1] < box.y + box.height + 9) right = Math.min(right, m[0] - 9);
      });
      if (edge + box.width + 8 <= right) t.setAttribute('x', edge + 4);
      else if (edge > at && box.x + box.width > at) t.style.visibility = 'hidden';
    });
  }
  wide.addEventListener('scroll', pin);
  window.addEventListener('resize', pin);
  pin();
  function $(q) { return document.querySelector(q); }
  function all(q) { return [].slice.call(document.querySelectorAll(q)); }
  function highlight(ev, on) {
    var li = ev.target.closest && ev.target.closest('.steps li');
    var m = li && svg.querySelector('.marker[data-n="' + li.dataset.n + '"]');
    if (m) { m.style.stroke = on ? '#e69f00' : ''; m.style.strokeWidth = on ? 2 : ''; }
  }
  document.addEventListener('mouseover', function (ev) { highlight(ev, true); });
  document.addEventListener('mouseout', function (ev) { highlight(ev, false); });
  if (!source || !window.DecompressionStream) return;

  // Texts, as package format writes them.
  function esc(s) {
    return String(s).replace(/[&<>"']/g, function (c) { return '&#' + c.charCodeAt(0) + ';'; });
  }
  function number(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, ','); }
  function count(n, noun) { return number(n) + ' ' + noun + (n === 1 ? '' : 's'); }
  function instant(t) { return (t / 1e6).toFixed(3) + ' s'; }
  function digits(v) {
    return v.toFixed(Math.max(0, 2 - Math.floor(Math.log10(Math.max(v, 1))))).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
  }
  function duration(d) {
    if (d === 0) return '0 s';
    if (d < 1e3) return digits(d) + ' µs';
    if (d < 1e6) return digits(d / 1e3) + ' ms';
    if (d < 6e8) return (d / 1e6).toFixed(2) + ' s';
    var s = Math.round(d / 1e6), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return (h ? h + 'h' : '') + m + 'm' + s % 60 + 's';
  }
  function tickText(t, step) {
    var decimals = step < 10 ? 3 : step < 100 ? 2 : 1;
    if (step < 1e3) return (t / 1e3).toFixed(decimals) + ' ms';
    decimals = 0;
    for (var unit = 1e6; step < unit && decimals < 3; unit /= 10) decimals++;
    return (t / 1e6).toFixed(decimals) + ' s';
  }
  function client(c) { return D.names[c] || 'client ' + c; }
  function keyName(k) { return D.keys[k] || 'the lock'; }
  function ticks(a, b, n) {
    var unit = 1, step = 0, out = [];
    for (; !step; unit *= 10) [1, 2, 5].forEach(function (f) {
      if (!step && Math.floor((b - a) / (f * unit)) <= n) step = f * unit;
    });
    for (var t = Math.ceil(a / step) * step; t <= b; t += step) out.push(t);
    return {step: step, at: out};
  }

  // Colors, as palette and Ink in svg.go.
  var palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#8d6e3f', '#6a5acd', '#7f8c2d'];
  function colorOf(c) { return c < 0 ? -1 : D.colors[c] === undefined ? c : D.colors[c]; }
  function fill(i) { return i < 0 ? '#8a94a0' : palette[i % 8]; }
  function ink(i) { return [0, 2, 5, 6].indexOf(Math.max(i, 0) % 8) >= 0 ? '#ffffff' : '#10202c'; }

  // Drawing, as svg.go.
  var out, y, top, notes;
  function x(t) { return x0 + (x1 - x0) * (Math.min(Math.max(t, from), until) - from) / (until - from); }
  function shows(a, b) { return a <= until && b >= from; }
  function tip(text) { return text ? '<title>' + esc(text.replace(/\u0060/g, '')) + '</title>' : ''; }
  function raw(s) { out.push(s); }
  function f1(n) { return n.toFixed(1); }
  function bar(a, b, top, h, text, attrs) {
    raw('<rect ' + attrs + ' x="' + f1(x(a)) + '" y="' + f1(top) + '" width="' + f1(Math.max(x(b) - x(a), 0.8)) +
      '" height="' + h + '">' + tip(text) + '</rect>');
  }
  function level(a, b, at, text, attrs) {
    raw('<line ' + attrs + ' x1="' + f1(x(a)) + '" x2="' + f1(x(b)) + '" y1="' + f1(at) + '" y2="' + f1(at) + '">' +
      tip(text) + '</line>');
  }
  function line(t, y1, y2, attrs) {
    raw('<line ' + attrs + ' x1="' + f1(x(t)) + '" x2="' + f1(x(t)) + '" y1="' + f1(y1) + '" y2="' + f1(y2) + '"/>');
  }
  function mark(t, at, text, shape) {
    if (t < from || t > until) return;
    raw('<g transform="translate(' + f1(x(t)) + ' ' + f1(at) + ')">' + shape + tip(text) + '</g>');
  }
  function text(at, top, s, attrs) {
    raw('<text x="' + f1(at) + '" y="' + f1(top) + '" ' + attrs + '>' + esc(s) + '</text>');
  }
  function textWidth(s) { return 6.1 * Array.from(s).length; }
  var MARGIN = 10; // as labelMargin in svg.go
  function labelBar(a, b, top, color, texts) { labelParts([a, b], top, color, texts); }
  // labelParts writes the first of texts that fits between two neighbors of the times at, which are those of markers.
  function labelParts(at, top, color, texts) {
    texts.some(function (s) {
      return at.slice(1).some(function (b, i) {
        var fits = textWidth(s) + 2 * MARGIN <= x(b) - x(at[i]);
        if (fits) text(x(at[i]) + MARGIN, top, s, 'class="in" fill="' + color + '"');
        return fits;
      });
    });
  }
  function group(name, sub) {
    raw('<line x1="0" x2="' + RIGHT + '" y1="' + f1(y) + '" y2="' + f1(y) + '" class="rule"/>');
    text(0, y + 19, name, 'class="group"');
    y += 5;
    if (sub) text(0, y + 32, sub, 'class="sub"');
  }
  // blocks joins neighbors that are too narrow to be drawn separately.
  function blocks(items, keep) {
    var joined = [], open = false, last;
    items.forEach(function (w) {
      var thin = x(w.b) - x(w.a) < 1.6 && !(keep && keep(w));
      if (thin && open && x(w.a) - x(last.b) < 1.6) {
        last.b = Math.max(last.b, w.b);
        last.n++;
        return;
      }
      joined.push(last = {a: w.a, b: w.b, n: 1, of: w});
      open = thin;
    });
    return joined;
  }

  // Rows of the picture, as timeline_*.go.
  function faultEnd(f) { return f.until < 0 ? D.end : Math.min(f.until, D.end); }
  function faultRows() {
    if (!D.faults.length) return;
    group('FAULTS');
    var drawn = 0, omitted = 0;
    D.faults.forEach(function (f) {
      if (!shows(f.from, faultEnd(f))) return;
      if (drawn === 10) { omitted++; return; }
      drawn++;
      faultRow(f);
      y += 22;
    });
    if (!drawn) { text(LEFT, y + 14, 'none in this window', 'class="quiet"'); y += 22; }
    if (omitted) notes.push(number(omitted) + ' more ' + (omitted === 1 ? 'fault' : 'faults') + ' in this window');
    y += 6;
  }
  function faultRow(f) {
    var name = f.name + (f.target ? ' · ' + f.target : ''), end = faultEnd(f), a = f.from, effects = f.effects || [];
    bar(a, end, y + 3, 17, name + ': injected at ' + instant(a) + (f.single ? ', nothing to heal' : f.until < 0 ? ', not healed' :
      ', healed at ' + instant(f.until)) + '. ' + f.detail.charAt(0).toUpperCase() + f.detail.slice(1),
      'class="fault" rx="2"');
    var texts = [name], state = f.state;
    if (state) texts = [name + ': ' + (Array.from(state).length > 60 ? Array.from(state).slice(0, 59).join('') + '…' : state), name];
    effects.forEach(function (e) {
      if (e.t < end && x(e.t) - x(a) < textWidth(texts[0]) + 20) a = Math.max(a, e.t);
    });
    var fits = texts.filter(function (s) { return textWidth(s) + 24 <= x(end) - x(a); })[0];
    if (fits) text(x(a) + 12, y + 15.5, fits, 'class="in" fill="#10202c"');
    else if (x(end) + textWidth(name) + 14 < RIGHT) text(x(end) + 10, y + 15.5, name, 'class="in" fill="var(--ink)"');
    else text(x(f.from) - 6, y + 15.5, name, 'class="in" fill="var(--ink)" text-anchor="end"');
    effects.forEach(function (e) {
      mark(e.t, y + 11.5, 'took effect at ' + instant(e.t) + ': ' + e.text, '<path d="M0-8 5 0 0 8-5 0z" class="effect"/>');
    });
  }
  function sampled() { return D.nodes.some(function (n) { return n.up || n.down; }); }
  function masterRows() {
    if (D.quorum || !sampled() || D.nodes.length < 2) return;
    group(D.leader.toUpperCase(), 'as sampled');
    var start = y;
    D.nodes.forEach(function (n) {
      var drawn = false;
      (n.master || []).forEach(function (w) {
        if (!shows(w[0], w[1])) return;
        drawn = true;
        bar(w[0], w[1], y + 3, 17, n.full + ' was ' + D.leader + ' from ' + instant(w[0]) + ' to ' + instant(w[1]), 'class="master" rx="2"');
        labelBar(w[0], w[1], y + 15.5, '#ffffff', [n.full, n.name]);
      });
      if (drawn) y += 22;
    });
    y = Math.max(y, start + 34) + 6;
  }
  function keyRows() {
    if (!sampled()) { notes.push('nodes, which were not sampled'); return; }
    group(D.keyAt);
    var held = D.nodes.map(function () { return []; }), S = D.states;
    for (var i = 0; i < S.from.length; i++) {
      var b = S.from[i] + S.length[i];
      if (S.key[i] === key && shows(S.from[i], b)) held[S.node[i]].push({a: S.from[i], b: b, i: i});
    }
    D.nodes.slice(0, 9).forEach(function (n, k) {
      text(LEFT - 14, y + 16, n.name, 'class="row"');
      keyRow(n, held[k]);
      y += 24;
    });
    if (D.nodes.length > 9) notes.push(number(D.nodes.length - 9) + ' more nodes');
    y += 6;
  }
  function keyRow(n, held) {
    var items = held.slice();
    (n.down || []).forEach(function (w) { items.push({a: w[0], b: w[1], down: true}); });
    (n.up || []).forEach(function (w) { // free, where no state of the key says otherwise
      if (!shows(w[0], w[1])) return;
      var at = w[0];
      held.forEach(function (h) {
        if (h.a > at && h.a <= w[1]) items.push({a: at, b: h.a, free: true});
        if (h.a <= w[1] && h.b >= at) at = Math.max(at, h.b);
      });
      if (at < w[1]) items.push({a: at, b: w[1], free: true});
    });
    items = items.filter(function (w) { return shows(w.a, w.b); });
    items.sort(function (p, q) { return p.a - q.a || p.b - q.b; });
    blocks(items).forEach(function (w) {
      if (w.n > 1) bar(w.a, w.b, y + 4, 16, n.name + ': ' + count(w.n, 'short state'), 'class="many"');
      else if (w.of.down) {
        bar(w.a, w.b, y + 4, 16, n.name + ' does not reply from ' + instant(w.a), 'fill="url(#p-down)"');
        labelBar(w.a, w.b, y + 16, 'var(--soft)', ['does not reply', 'down']);
      } else if (w.of.free) level(w.a, w.b, y + 12, n.name + ': free', 'class="free"');
      else keyHeld(n, w);
    });
  }
  function keyHeld(n, w) {
    var S = D.states, who = S.holders[S.holder[w.of.i]], ttl = S.ttl[w.of.i], color = colorOf(who.client);
    var left = ttl < 0 ? D.endless[who.permits ? 1 : 0] : duration(ttl) + ' left';
    bar(w.a, w.b, y + 4, 16, n.name + ': ' + who.label + '; ' + left + ' at ' + instant(w.a), 'fill="' + fill(color) + '" rx="2"' +
      (who.earlier ? ' opacity=".6"' : ''));
    labelBar(w.a, w.b, y + 16, who.earlier ? 'var(--pale-ink)' : ink(color), [who.label + ' · ' + left, who.label, who.short]);
  }
  function violation() { return chosen >= 0 ? D.violations[chosen] : null; }
  // rowClients are those of the violation and of the chosen operation, then the most active ones.
  function rowClients() {
    var activity = {}, H = D.holds, O = D.ops, v = violation(), rows = [], i, c;
    for (i = 0; i < H.from.length; i++) {
      c = H.client[i];
      if (H.key[i] === key && shows(H.from[i], H.from[i] + H.length[i])) activity[c] = (activity[c] || 0) + 2;
    }
    for (i = 0; i < O.call.length; i++) {
      c = O.client[i];
      if (O.key[i] === key && O.call[i] <= until && (O.took[i] < 0 || O.call[i] + O.took[i] >= from)) {
        activity[c] = (activity[c] || 0) + 1;
      }
    }
    function add(c) { if (rows.indexOf(c) < 0) rows.push(c); }
    if (v && (v.key < 0 || v.key === key)) (v.clients || []).forEach(add);
    if (wanted >= 0) add(wanted);
    var others = Object.keys(activity).map(Number).filter(function (c) { return rows.indexOf(c) < 0; });
    others.sort(function (a, b) { return activity[b] - activity[a] || a - b; });
    var room = Math.min(Math.max(7 - rows.length, 0), others.length), rest = others.length - room;
    if (rest) notes.push(number(rest) + ' more active ' + (rest === 1 ? 'client' : 'clients'));
    return rows.concat(others.slice(0, room));
  }
  function clientRows() {
    group('CLIENTS', 'as they saw it');
    var rows = rowClients(), at = {}, waits = [], holds = [], writes = [], i, a, b, H = D.holds, O = D.ops, T = D.writes;
    rows.forEach(function (c, k) { at[c] = k; waits.push([]); holds.push([]); writes.push([]); });
    for (i = 0; i < O.call.length; i++) {
      a = O.call[i]; b = O.took[i] < 0 ? D.end : a + O.took[i];
      if (O.key[i] === key && at[O.client[i]] !== undefined && taking(i) && shows(a, b)) waits[at[O.client[i]]].push({a: a, b: b, i: i});
    }
    for (i = 0; i < H.from.length; i++) {
      a = H.from[i]; b = a + Math.max(H.length[i], Math.min(counted(i), D.end - a));
      if (H.key[i] === key && at[H.client[i]] !== undefined && shows(a, b)) holds[at[H.client[i]]].push({a: a, b: a + H.length[i], i: i});
    }
    for (i = 0; i < T.time.length; i++) {
      if (T.key[i] === key && at[T.client[i]] !== undefined && shows(T.time[i], T.time[i])) writes[at[T.client[i]]].push(i);
    }
    rows.forEach(function (c, k) {
      raw('<rect x="' + (LEFT - 23) + '" y="' + f1(y + 11) + '" width="9" height="9" rx="2" fill="' + fill(colorOf(c)) + '"/>');
      text(LEFT - 29, y + 20, client(c), 'class="row"');
      waitRow(waits[k]);
      holdRow(c, holds[k], writes[k].map(function (i) { return T.time[i]; }));
      writeRow(writes[k]);
      y += 44;
    });
    if (!rows.length) { text(LEFT, y + 14, 'no client was active in this window', 'class="quiet"'); y += 30; }
    y += 4;
  }
  function taking(i) { var n = D.ops.names[D.ops.name[i]]; return n === 'acquire' || n === 'try'; }
  function waitRow(items) {
    var O = D.ops, at = y + 16;
    blocks(items).forEach(function (w) {
      var i = w.of.i;
      if (w.n > 1) { level(w.a, w.b, at, count(w.n, 'request'), 'class="wait"'); return; }
      if (O.out[i] === INFO) level(w.a, w.b, at, 'requested at ' + instant(w.a) + '; the outcome is unknown', 'class="wait unknown"');
      else {
        if (O.out[i] === FAIL) mark(w.b, at, 'not granted at ' + instant(w.b), '<path d="M0-5V5" class="denied"/>');
        level(w.a, w.b, at, 'waited from ' + instant(w.a) + ' to ' + instant(w.b) + ' (' + duration(w.b - w.a) + ')', 'class="wait"');
      }
      mark(w.a, at, '', '<circle r="3" class="request"/>');
    });
  }
  function holdRow(c, items, writes) {
    var v = violation(), color = colorOf(c);
    blocks(items, function (w) { return v && v.events.indexOf(D.holds.granted[w.i]) >= 0; }).forEach(function (w) {
      if (w.n > 1) {
        bar(w.a, w.b, y + 8, 16, count(w.n, 'hold') + ', each too short to be drawn separately', 'fill="' + fill(color) + '" opacity=".55"');
        return;
      }
      holdBar(c, w.of.i, w.a, w.b, color, writes);
    });
  }
  function counted(i) { // the validity of a hold, which its release ends
    var H = D.holds;
    return /^release/.test(H.ends[H.end[i]]) ? Math.min(H.valid[i], H.length[i]) : H.valid[i];
  }
  function holdBar(c, i, a, b, color, writes) {
    var H = D.holds, end = H.ends[H.end[i]], p = H.permits[i], token = H.token[i], valid = a + counted(i);
    var promise = 'valid until ' + instant(a + H.valid[i]);
    if (H.valid[i]) {
      if (valid > until) {
        mark(until, y + 30, promise, '<path d="M2-5 9 0 2 5z" fill="' + fill(color) + '"/>');
      }
      bar(a, valid, y + 26, 8, 'the grant of ' + keyName(key) + ' to ' + client(c) + ' was ' + promise,
        'fill="url(#p-c' + (color < 0 ? -1 : color % 8) + ')" stroke="' + fill(color) + '" class="validity"');
    }
    if (shows(a, b)) {
      bar(a, b, y + 8, 16, client(c) + ' held ' + keyName(key) + ' from ' + instant(a) + ' to ' + instant(b) + ' (' + duration(b - a) +
        '): ' + end, 'fill="' + fill(color) + '" rx="2"');
      var marks = [a].concat(writes.filter(function (t) { return t > a && t < b; }), b); // they cover no label
      labelParts(marks, y + 20, ink(color), +token ? ['holds · token ' + token, 'token ' + token, String(token)] :
        p ? ['holds ' + count(p, 'permit'), count(p, 'permit'), String(p)] : ['holds']);
    }
    if (end === 'loss reported' || end === 'renewal refused') {
      mark(b, y + 3, end + ' at ' + instant(b), '<path d="M-6-4H6L0 5z" class="lost"/>');
    } else if (end === 'client crashed') mark(b, y + 16, 'crashed at ' + instant(b), '<path d="M-5-5 5 5M5-5-5 5" class="crash"/>');
  }
  function writeText(i) {
    var T = D.writes, s = client(T.client[i]) + ' writes to the resource guarded by ' + keyName(T.key[i]);
    if (+T.token[i]) s += ' with token ' + T.token[i] + ' ' + (T.older[i] ? '(highest seen: ' + T.seen[i] + ')' : '');
    if (!T.accepted[i]) return s + '; rejected';
    return T.read[i] === T.found[i] ? s : s + '; it had read ' + T.read[i] + ' and found ' + T.found[i] + ': a lost update';
  }
  function writeRow(items) {
    var last = -1e9, skipped = 0, T = D.writes;
    items.forEach(function (i) {
      var s = instant(T.time[i]) + ': ' + writeText(i);
      if (T.read[i] !== T.found[i] || +T.token[i] && T.older[i]) {
        mark(T.time[i], y + 16, s, '<circle r="9" class="halo"/><path d="M-5-5 5 5M5-5-5 5" class="stale"/>');
        return;
      }
      if (x(T.time[i]) - last < 5) { skipped++; return; }
      if (skipped) s += ' (after ' + count(skipped, 'write') + ' too close to draw)';
      last = x(T.time[i]); skipped = 0;
      mark(T.time[i], y + 16, s, '<circle r="4" class="touch"/>');
    });
  }
  function overlapRow() {
    var v = violation(), seen = {}, elsewhere = 0;
    labeled = [];
    group(v && !v.pair ? 'VIOLATION' : 'OVERLAP');
    var bars = [];
    D.violations.forEach(function (w, i) {
      if (!w.drawn || !shows(w.from, w.until) || v && v.pair && !w.holds || seen[w.from + ' ' + w.until] && i !== chosen) return;
      if (w.key >= 0 && w.key !== key) { elsewhere++; return; }
      seen[w.from + ' ' + w.until] = true;
      if (i === chosen) bars.unshift(i); else bars.push(i);
    });
    bars.slice().reverse().forEach(function (i) { overlapBar(D.violations[i], i); });
    bars.forEach(function (i) {
      overlapLabel(D.violations[i]);
      if (i === chosen) labeled.push([x(D.violations[i].from), x(visibleEnd(D.violations[i]))]);
    });
    if (elsewhere) notes.push(number(elsewhere) + ' more ' + (elsewhere === 1 ? 'violation' : 'violations') + ' of other keys');
    if (!Object.keys(seen).length && D.judged) text(LEFT, y + 16, 'none', 'class="good"');
    y += 28;
  }
  var labeled; // where labels of bars are
  function visibleEnd(w) {
    var b = w.until, least = (until - from) / 1000 + 0.001;
    while (x(b) - x(w.from) < 3 && b < until) b += least;
    return b;
  }
  function overlapBar(w, i) {
    bar(w.from, visibleEnd(w), y + 3, 19, w.text, 'class="red' + (i === chosen ? ' main' : '') + '" rx="2" data-v="' + i + '"');
  }
  function reserve(at, s) {
    var end = at + textWidth(s);
    if (labeled.some(function (l) { return l[0] < end && at < l[1]; })) return false; // its tooltip has it
    labeled.push([at, end]);
    return true;
  }
  function overlapLabel(w) {
    var b = visibleEnd(w), s = w.until > w.from ? duration(w.until - w.from) : instant(w.from);
    if (textWidth(s) + 12 <= x(w.until) - x(w.from)) {
      if (reserve(x(w.from) + 7, s)) text(x(w.from) + 7, y + 17, s, 'class="in strong" fill="#ffffff"');
      return;
    }
    var left = x(b) + textWidth(s) + 10 > RIGHT, at = left ? x(w.from) - 6 - textWidth(s) : x(b) + 6;
    if (!reserve(at, s)) return;
    if (left) text(x(w.from) - 6, y + 17, s, 'class="in strong redtext" text-anchor="end"');
    else text(at, y + 17, s, 'class="in strong redtext"');
  }
  function axis() {
    var t = ticks(from, until, 9);
    t.at.forEach(function (at) {
      line(at, top - 6, y, 'class="tick"');
      var mid = Math.min(x(at), W - 24); // inside of the picture
      text(mid, top - 12, tickText(at, t.step), 'class="axis"');
      text(mid, y + 16, tickText(at, t.step), 'class="axis"');
    });
  }
  function markers() {
    var last = -1e9;
    stepsOf(chosen).forEach(function (m) {
      if (m.t < from || m.t > until) return;
      var at = Math.max(x(m.t), last + 23);
      last = at;
      raw('<g class="marker" data-n="' + m.n + '">');
      line(m.t, 34, y, 'class="lead"');
      raw('<line class="elbow" x1="' + f1(x(m.t)) + '" x2="' + f1(at) + '" y1="34" y2="24"/><g transform="translate(' + f1(at) + ' 14)">' +
        '<circle r="10.5" class="dot"/><text y="4" class="num">' + m.n + '</text>' + tip(instant(m.t) + ': ' + m.text) + '</g></g>');
    });
    if (cursor >= 0 || spot >= 0) { // an event, or a step without one
      var t = cursor >= 0 ? eventTime(events()[cursor]) : spot;
      if (t >= from && t <= until) {
        line(t, 44, y, 'class="cursor"');
        mark(t, 44, '', '<path d="M-6-8H6L0 1z" class="here"/>');
      }
    }
  }
  function draw() {
    var rows, v = violation();
    out = []; notes = []; y = 58; top = 58; x0 = LEFT; x1 = RIGHT;
    faultRows(); masterRows(); keyRows(); clientRows(); overlapRow();
    rows = out; out = [];
    axis();
    if (v && (v.key < 0 || v.key === key) && shows(v.from, v.until)) bar(v.from, v.until, top - 6, y - top + 6, '', 'class="band"');
    raw('<g clip-path="url(#p-clip)">' + rows.join('') + '</g>');
    markers();
    svg.setAttribute('viewBox', '0 0 ' + W + ' ' + (y + 26));
    svg.setAttribute('aria-label', 'Timeline of ' + keyName(key) + ' from ' + instant(from) + ' to ' + instant(until));
    svg.innerHTML = defs + out.join('');
    pin();
    svg.classList.toggle('zoomed', until - from < D.until - D.from);
    all('#picture .undrawn').forEach(function (p) { p.remove(); });
    var caption = $('#picture figcaption');
    notes.forEach(function (n) {
      var p = document.createElement('p');
      p.className = 'note undrawn';
      p.textContent = 'Not drawn: ' + n + '.';
      caption.insertBefore(p, caption.children[1] || null);
    });
    frame();
  }
  var queued = false;
  function redraw() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(function () { queued = false; draw(); });
  }

  // The window.
  function show(a, b) {
    var width = Math.min(Math.max(b - a, 20), Math.max(D.until - D.from, 20));
    from = Math.max(D.from, Math.min(a, D.until - width));
    until = from + width;
    redraw();
  }
  function zoom(k, at) { show(at - (at - from) * k, at + (until - at) * k); }
  function timeAt(el, ev, a, b) {
    var box = el.getBoundingClientRect(), px = (ev.clientX - box.left) * W / box.width;
    return a + (b - a) * (px - LEFT) / (RIGHT - LEFT);
  }

  // Violations. The steps of the one that the page explains are its story; those of another one are its evidence.
  var story = $('.steps'), storyHTML = story && story.innerHTML;
  function stepsOf(i) {
    if (i < 0 || i === D.worst) return D.steps || [];
    var v = D.violations[i], found = [];
    if (!v.steps) {
      everyEvent(function (kind, k, part, t, index) {
        if (index >= 0 && v.events.indexOf(index) >= 0) found.push({t: t, text: eventText([kind, k, part]), index: index});
      });
      var begin = found.reduce(function (t, s) { return Math.min(t, s.t); }, v.from);
      D.faults.filter(function (f) { // in force between the first evidence and the end
        return f.from <= v.until && (f.until < 0 || f.until >= begin);
      }).slice(-5).forEach(function (f) {
        var e = (f.effects || [])[0];
        found.push({t: e ? e.t : f.from, text: f.name + (f.target ? ' on ' + f.target : '') + (e ? ': ' + e.text : ' (no effect observed)'),
          index: e ? e.index : f.index});
      });
      found.sort(function (p, q) { return p.t - q.t || p.index - q.index; });
      found.forEach(function (s, n) { s.n = n + 1; });
      v.steps = found;
    }
    return v.steps;
  }
  function writeSteps() {
    if (!story) {
      story = document.createElement('ol');
      story.className = 'steps';
      $('#picture').appendChild(story);
    }
    if (chosen === D.worst && storyHTML) { story.innerHTML = storyHTML; return; }
    story.innerHTML = stepsOf(chosen).map(function (s) {
      return '<li data-n="' + s.n + '"><span class="n">' + s.n + '</span><time>' + instant(s.t) + '</time><p>' + esc(s.text) + ' ' +
        (document.getElementById('e' + s.index) ? '<a href="#e' + s.index + '">event ' + s.index + '</a>' :
          '<span class="quiet">event ' + s.index + '</span>') + '</p></li>';
    }).join('');
  }
  var order; // violations by time
  function choose(i) {
    var v = D.violations[i];
    chosen = i; wanted = -1; cursor = spot = -1;
    setKey(v.key >= 0 ? v.key : key);
    if (i === D.worst) show(D.shown[0], D.shown[1]);
    else {
      var a = v.from, b = Math.max(v.until, v.from);
      stepsOf(i).forEach(function (s) {
        a = Math.min(a, Math.max(s.t, v.from - 20e6));
        b = Math.max(b, Math.min(s.t, v.from + 20e6));
      });
      b = Math.min(b, v.from + 30e6);
      var margin = Math.max((b - a) / 12, 1000);
      show(Math.max(a - margin, D.from), Math.min(b + margin, D.until));
    }
    writeSteps();
    if (diagram) {
      var rows = rowClients(), before = stepsOf(i).filter(function (s) { return s.t <= v.from; });
      notes = [];
      diagram.pick(rows);
      depictStep(before.length || 1);
    }
    say('Violation ' + (order.indexOf(i) + 1) + ' of ' + D.violations.length + ', ' + v.property + (v.class ? ', ' + v.class : '') +
      ': ' + v.text);
    all('button[data-v]').forEach(function (b) { b.setAttribute('aria-pressed', +b.dataset.v === i); });
  }
  function nextViolation(by) {
    if (!order.length) return;
    var at = order.indexOf(chosen);
    choose(order[at < 0 ? 0 : (at + by + order.length) % order.length]);
  }
  var picker = $('#pick-key');
  function setKey(k) {
    if (k !== key) { key = k; cursor = spot = -1; keyEvents = null; depict(moment); }
    picker.value = k;
    redraw();
  }
  function say(s) { var p = $('#now'); p.hidden = false; p.textContent = s; }

  // spent is the time until the client of an operation learned its outcome, or that it is unknown; undefined: never.
  function spent(i) { return D.ops.took[i] < 0 ? D.ops.learned[i] : D.ops.took[i]; }

  // Events: every line of the history that the data has. Parts of an operation: 0 the request, 1 its end.
  function everyEvent(visit) {
    var O = D.ops, T = D.writes, N = D.notices, i;
    for (i = 0; i < O.call.length; i++) {
      visit('op', i, 0, O.call[i], O.index[i], O.key[i]);
      if (O.ended[i]) visit('op', i, 1, O.call[i] + (spent(i) || 0), O.index[i] + O.ended[i], O.key[i]);
    }
    for (i = 0; i < T.time.length; i++) visit('write', i, 0, T.time[i], T.index[i], T.key[i]);
    for (i = 0; i < N.time.length; i++) visit('notice', i, 0, N.time[i], N.index[i], D.keys[N.key[i]] ? N.key[i] : -1);
    D.faults.forEach(function (f, i) {
      visit('fault', i, 0, f.from, f.index, -1);
      (f.effects || []).forEach(function (e, k) { visit('fault', i, k + 1, e.t, e.index, -1); });
      if (f.until >= 0 && !f.single) visit('fault', i, -1, f.until, f.healed, -1);
    });
  }
  var outcomes = {2: 'ok', 3: 'fail', 4: 'info'};
  function opText(i, part) {
    var O = D.ops, what = O.names[O.name[i]] + ' of ' + keyName(O.key[i]), who = client(O.client[i]);
    if (!part) return who + ' invokes ' + what;
    if (O.out[i] === INFO) return who + ': ' + what + ' has an unknown outcome';
    return who + ': ' + what + (O.out[i] === OK ? ' succeeds' + (+O.token[i] ? ' with token ' + O.token[i] : '') : ' fails') +
      ' after ' + duration(O.took[i]);
  }
  function noticeText(i) {
    var N = D.notices, who = client(N.client[i]), name = N.names[N.name[i]], of = keyName(N.key[i]);
    if (N.client[i] < 0) return name;
    if (name === 'crash') return who + ' crashes';
    return name === 'lost' ? who + ' learns that it lost ' + of : name === 'renewed' ? who + ' renews ' + of : who + ': ' + name + ' of ' + of;
  }
  function eventText(e) {
    if (e[0] === 'op') return opText(e[1], e[2]);
    if (e[0] === 'write') return writeText(e[1]);
    if (e[0] === 'notice') return noticeText(e[1]);
    var f = D.faults[e[1]], s = f.name + (f.target ? ' on ' + f.target : '');
    return e[2] < 0 ? s + ' is healed' : e[2] ? s + ' takes effect: ' + f.effects[e[2] - 1].text : s + ' is injected';
  }
  function eventTime(e) { return e[3]; }
  var keyEvents = null;
  // events are those of the chosen key, and those that concern every key, in order.
  function events() {
    if (!keyEvents) {
      keyEvents = [];
      everyEvent(function (kind, i, part, t, index, k) {
        if (k < 0 || k === key) keyEvents.push([kind, i, part, t, index]);
      });
      keyEvents.sort(function (p, q) { return p[3] - q[3] || p[4] - q[4]; });
    }
    return keyEvents;
  }
  function firstAt(list, t) {
    var a = 0, b = list.length;
    while (a < b) { var m = (a + b) >> 1; if (eventTime(list[m]) < t) a = m + 1; else b = m; }
    return a;
  }
  function goTo(i) {
    var list = events(), e;
    if (!list.length) return;
    cursor = Math.max(0, Math.min(i, list.length - 1));
    spot = -1;
    e = list[cursor];
    say(instant(e[3]) + ': ' + eventText(e) + (e[4] >= 0 ? ' (event ' + e[4] + ')' : '') + '. Event ' + number(cursor + 1) + ' of ' +
      number(list.length) + ' of ' + keyName(key));
    see(e[3]);
    depict(e[3], e[4]);
    if (e[4] >= 0) address('#event=' + e[4]);
  }
  function see(t) { // moves the window to a time, if it is out of sight
    var width = until - from;
    if (t < from || t > until) show(t - width / 2, t + width / 2);
    redraw();
    requestAnimationFrame(function () { // on a narrow screen
      var at = wide.scrollWidth * x(t) / W;
      if (at < wide.scrollLeft + 20 || at > wide.scrollLeft + wide.clientWidth - 20) wide.scrollLeft = at - wide.clientWidth / 2;
    });
  }
  function step(by) {
    var list = events();
    if (cursor >= 0) goTo(cursor + by);
    else if (spot >= 0) goTo(by > 0 ? firstAt(list, spot + 1) : firstAt(list, spot) - 1);
    else goTo(by > 0 ? firstAt(list, from) : firstAt(list, until) - 1);
  }

  // The diagram shows the instant of the cursor: an event, or a step of the story.
  var current = 0; // the number of the step that the diagram shows; 0: an instant between the steps
  function depict(t, index) {
    if (!diagram || t < 0) return;
    var steps = stepsOf(chosen), n = 0;
    moment = t;
    steps.forEach(function (s) { if (index >= 0 && s.index === index) n = s.n; });
    current = n;
    $('#state').textContent = diagram.show(t);
    $('#when').textContent = n ? 'Step ' + n + ' of ' + steps.length : index >= 0 ? 'Event ' + index : 'Between two steps';
    $('#when-time').textContent = instant(t);
    all('.steps li').forEach(function (li) {
      if (+li.dataset.n === n) li.setAttribute('aria-current', 'step');
      else li.removeAttribute('aria-current');
    });
  }
  function depictStep(n) {
    var s = stepsOf(chosen)[n - 1];
    if (!s || !diagram) return;
    depict(s.t, -1);
    current = n;
    $('#when').textContent = 'Step ' + n + ' of ' + stepsOf(chosen).length;
    all('.steps li').forEach(function (li) { if (+li.dataset.n === n) li.setAttribute('aria-current', 'step'); });
  }
  // goStep moves the cursor of the timeline and the diagram to a step.
  function goStep(n) {
    var s = stepsOf(chosen)[n - 1], v = violation();
    if (!s) return;
    if (v && v.key >= 0) setKey(v.key);
    cursor = -1;
    events().forEach(function (e, i) { if (s.index >= 0 && e[4] === s.index) cursor = i; });
    spot = cursor < 0 ? s.t : -1;
    say(instant(s.t) + ': ' + s.text.replace(/\u0060/g, '') + (s.index >= 0 ? ' (event ' + s.index + ')' : '') + '. Step ' + n + ' of ' +
      stepsOf(chosen).length);
    see(s.t);
    depictStep(n);
    address(s.index >= 0 ? '#event=' + s.index : '#step' + n);
  }
  function nextStep(by) { // after the moment that the diagram shows
    var steps = stepsOf(chosen), near = steps.filter(function (s) { return by > 0 ? s.t > moment : s.t < moment; });
    if (current) goStep(Math.max(1, Math.min(current + by, steps.length)));
    else if (near.length) goStep(near[by > 0 ? 0 : near.length - 1].n);
  }
  function play(on) {
    clearInterval(playing);
    playing = 0;
    if (on) {
      var last = stepsOf(chosen).length;
      if (current === last) goStep(1);
      playing = setInterval(function () {
        nextStep(1);
        if (current === last) play(false);
      }, 1600);
    }
    $('[data-do=play]').textContent = on ? 'Stop' : 'Play';
  }

  // Links to an event: #event=13.
  function address(hash) {
    try { history.replaceState(null, '', hash); } catch (e) { /* a page without an address */ }
  }
  function followHash() {
    var event = /^#event=(\d+)$/.exec(location.hash), at = /^#step(\d+)$/.exec(location.hash), found = null;
    if (at) goStep(+at[1]);
    if (!event) return;
    everyEvent(function (kind, i, part, t, index, k) { if (index === +event[1]) found = {k: k}; });
    if (!found) { say('Event ' + event[1] + ' is not among the events of this page.'); return; }
    if (found.k >= 0) setKey(found.k);
    events().some(function (e, i) {
      if (e[4] === +event[1]) goTo(i);
      return e[4] === +event[1];
    });
    $('#picture').scrollIntoView({block: 'start'});
  }
  function copy(text, button) {
    var was = button.textContent, area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    document.body.appendChild(area);
    area.select();
    button.textContent = document.execCommand('copy') ? 'Copied' : 'Not copied';
    area.remove();
    button.focus();
    setTimeout(function () { button.textContent = was; }, 1500);
  }

  // The strip of the whole run.
  var strip = $('svg.overview'), frameRect = strip && strip.querySelector('.frame');
  function stripX(t) { return LEFT + (RIGHT - LEFT) * Math.min(Math.max(t, 0), D.end) / Math.max(D.end, 1); }
  function frame() {
    if (!frameRect) return;
    frameRect.setAttribute('x', stripX(from));
    frameRect.setAttribute('width', Math.max(stripX(until) - stripX(from), 2));
    frameRect.firstElementChild.textContent = 'the timeline above: ' + instant(from) + ' to ' + instant(until);
  }
  function chosenBar(ev) {
    var at = ev.target.closest && ev.target.closest('[data-v]');
    return at ? +at.dataset.v : -1;
  }

  function wire() {
    var act = {
      'in': function () { zoom(0.6, (from + until) / 2); },
      out: function () { zoom(1 / 0.6, (from + until) / 2); },
      reset: function () {
        cursor = spot = -1;
        if (D.worst >= 0) choose(D.worst);
        else { chosen = -1; setKey(D.key); show(D.shown[0], D.shown[1]); }
      },
      whole: function () { show(D.from, D.until); },
      jump: function () {
        var v = violation(), m = v && Math.max((v.until - v.from) * 0.6, 500);
        if (v) show(v.from - m, v.until + m);
      },
      before: function () { nextViolation(-1); },
      after: function () { nextViolation(1); },
      back: function () { step(-1); },
      forth: function () { step(1); },
      earlier: function () { play(false); nextStep(-1); },
      later: function () { play(false); nextStep(1); },
      play: function () { play(!playing); },
      link: function (button) { copy(location.href, button); },
      issue: function (button) { copy($('#issue').textContent, button); }
    };
    document.addEventListener('click', function (ev) {
      var b = ev.target.closest && ev.target.closest('button');
      var li = ev.target.closest && ev.target.closest('.steps li');
      if (b && act[b.dataset.do]) act[b.dataset.do](b);
      else if (li && !ev.target.closest('a')) goStep(+li.dataset.n);
      else if (chosenBar(ev) >= 0 && !moved) {
        choose(chosenBar(ev));
        if (!svg.contains(ev.target)) { $('#picture').scrollIntoView({block: 'start'}); wide.focus({preventScroll: true}); }
      }
    });
    var keys = {ArrowRight: act.forth, ArrowLeft: act.back, ArrowDown: act.after, ArrowUp: act.before, '+': act['in'], '=': act['in'],
      '-': act.out, '0': act.reset, Home: function () { goTo(0); }, End: function () { goTo(Infinity); }};
    wide.addEventListener('keydown', function (ev) {
      if (ev.altKey || ev.ctrlKey || ev.metaKey || !keys[ev.key]) return;
      if ((ev.key === 'ArrowUp' || ev.key === 'ArrowDown') && !order.length) return;
      ev.preventDefault();
      keys[ev.key]();
    });
    var moving = $('.moving');
    if (moving) moving.addEventListener('keydown', function (ev) {
      var by = {ArrowRight: act.later, ArrowLeft: act.earlier, Home: function () { goStep(1); },
        End: function () { goStep(stepsOf(chosen).length); }}[ev.key];
      if (!by || ev.altKey || ev.ctrlKey || ev.metaKey) return;
      ev.preventDefault();
      by();
    });
    window.addEventListener('hashchange', followHash);
    picker.addEventListener('change', function () { setKey(+picker.value); });
    svg.addEventListener('wheel', function (ev) {
      if (!ev.ctrlKey && !ev.metaKey) return; // a plain wheel scrolls the page
      ev.preventDefault();
      zoom(ev.deltaY > 0 ? 1.25 : 0.8, timeAt(svg, ev, from, until));
    }, {passive: false});
    svg.addEventListener('dblclick', act.reset);
    drag(svg, function (ev, held) { // the time under the pointer stays there
      var by = held - timeAt(svg, ev, from, until);
      show(from + by, until + by);
    }, function (ev) { return until - from < D.until - D.from ? timeAt(svg, ev, from, until) : null; });
    if (strip) {
      drag(strip, function (ev) {
        var t = timeAt(strip, ev, 0, D.end), half = (until - from) / 2;
        show(t - half, t + half);
      }, function (ev) { return chosenBar(ev) < 0 ? 0 : null; });
    }
  }
  var moved = false; // the pointer was dragged, so its release is no click
  function drag(el, move, begin) {
    var held = null, start = 0;
    el.addEventListener('pointerdown', function (ev) { moved = false; held = begin(ev); start = ev.clientX; });
    el.addEventListener('pointermove', function (ev) {
      if (held === null || !moved && Math.abs(ev.clientX - start) < 4) return;
      if (!moved) el.setPointerCapture(ev.pointerId);
      moved = true;
      move(ev, held);
    });
    el.addEventListener('pointerup', function (ev) {
      if (held !== null && !moved && el === strip) move(ev, held);
      held = null;
    });
    el.addEventListener('pointercancel', function () { held = null; });
  }

  // The list of operations: only the visible rows are in the document.
  var ROW = 28;
  function list() {
    var grid = $('#ops'), body = grid.querySelector('.rows'), rows = [], found, active = -1, O = D.ops, T = D.writes, N = D.notices;
    var by = {client: $('#by-client'), key: $('#by-key'), type: $('#by-type'), outcome: $('#by-outcome')};
    function row(kind, i, t, c, k, type, outcome) { rows.push({kind: kind, i: i, t: t, c: c, k: k, type: type, outcome: outcome}); }
    O.call.forEach(function (t, i) { row('op', i, t, O.client[i], O.key[i], O.names[O.name[i]], outcomes[O.out[i]]); });
    T.time.forEach(function (t, i) { row('write', i, t, T.client[i], T.key[i], 'write', T.accepted[i] ? 'ok' : 'fail'); });
    N.time.forEach(function (t, i) { row('notice', i, t, N.client[i], D.keys[N.key[i]] ? N.key[i] : -1, N.client[i] < 0 ? 'observation' : N.names[N.name[i]], ''); });
    D.faults.forEach(function (f, i) { row('fault', i, f.from, -1, -1, 'fault', ''); });
    function index(r) { return r.kind === 'fault' ? D.faults[r.i].index : {op: O, write: T, notice: N}[r.kind].index[r.i]; }
    rows.sort(function (p, q) { return p.t - q.t || index(p) - index(q); });
    function options(select, values, name) {
      values.forEach(function (v) { select.add(new Option(name ? name(v) : v, v)); });
    }
    function distinct(f) {
      var seen = {}, list = [];
      rows.forEach(function (r) { var v = f(r); if (v !== '' && v !== -1 && !seen[v]) { seen[v] = true; list.push(v); } });
      return list;
    }
    options(by.client, distinct(function (r) { return r.c; }).sort(function (a, b) { return a - b; }), client);
    options(by.key, distinct(function (r) { return r.k; }).sort(function (a, b) { return a - b; }), keyName);
    options(by.type, distinct(function (r) { return r.type; }).sort());
    options(by.outcome, ['ok', 'fail', 'info']);
    function filter() {
      found = rows.filter(function (r) {
        return (by.client.value === '' || r.c === +by.client.value) && (by.key.value === '' || r.k === +by.key.value) &&
          (by.type.value === '' || r.type === by.type.value) && (by.outcome.value === '' || r.outcome === by.outcome.value);
      });
      active = -1;
      grid.removeAttribute('aria-activedescendant');
      grid.setAttribute('aria-rowcount', found.length + 1);
      body.style.height = Math.max(found.length, 1) * ROW + 'px';
      grid.scrollTop = 0;
      $('#found').textContent = number(found.length) + ' of ' + number(rows.length) + ' entries';
      render();
    }
    function cells(r) {
      var took = '', token = '', text = r.type;
      if (r.kind === 'op') { took = spent(r.i) === undefined ? 'no end' : duration(spent(r.i)); token = +O.token[r.i] ? O.token[r.i] : ''; }
      if (r.kind === 'write') { token = +T.token[r.i] ? T.token[r.i] : ''; if (T.read[r.i] !== T.found[r.i]) text = 'write (lost update)'; }
      if (r.kind === 'notice') text = N.names[N.name[r.i]];
      if (r.kind === 'fault') text = D.faults[r.i].name + ' ' + D.faults[r.i].target;
      if (r.k < 0) return [instant(r.t), r.c < 0 ? '' : client(r.c), text, null, r.outcome, took, token, index(r)]; // the text has both columns
      return [instant(r.t), r.c < 0 ? '' : client(r.c), text, r.k < 0 ? '' : keyName(r.k), r.outcome, took, token, index(r)];
    }
    function render() {
      var first = Math.max(0, Math.floor(grid.scrollTop / ROW) - 5);
      var last = Math.min(found.length, first + Math.ceil(grid.clientHeight / ROW) + 10), html = '';
      for (var i = first; i < last; i++) {
        html += '<div role="row" id="op' + i + '" aria-rowindex="' + (i + 2) + '" aria-selected="' + (i === active) + '" style="top:' + i * ROW +
          'px">' + cells(found[i]).map(function (c, k, all) {
            return c === null ? '' : '<span role="gridcell"' + (all[k + 1] === null ? ' class="both" aria-colspan="2"' : '') + '>' + esc(c) + '</span>';
          }).join('') + '</div>';
      }
      body.innerHTML = html || '<div role="row"><span role="gridcell">no entry</span></div>';
    }
    function activate(i) {
      if (!found.length) return;
      active = Math.max(0, Math.min(i, found.length - 1));
      var at = active * ROW, room = grid.clientHeight - 2 * ROW;
      if (at < grid.scrollTop) grid.scrollTop = at;
      if (at > grid.scrollTop + room) grid.scrollTop = at - room;
      render();
      grid.setAttribute('aria-activedescendant', 'op' + active);
    }
    function open() {
      var r = found[active], took = r.kind === 'op' ? Math.max(O.took[r.i], 0) : 0, width = Math.max(until - from, took * 1.5);
      if (D.keys[r.k] !== undefined) setKey(r.k);
      wanted = r.c;
      show(r.t + took / 2 - width / 2, r.t + took / 2 + width / 2);
      var k = firstAt(events(), r.t);
      while (k < events().length && !(events()[k][0] === r.kind && events()[k][1] === r.i)) k++;
      goTo(k);
      $('#picture').scrollIntoView({block: 'start'});
    }
    grid.addEventListener('scroll', render);
    window.addEventListener('resize', render);
    grid.addEventListener('click', function (ev) {
      var r = ev.target.closest('.rows [role=row]');
      if (r && r.id) { activate(+r.id.slice(2)); open(); }
    });
    grid.addEventListener('keydown', function (ev) {
      var page = Math.floor(grid.clientHeight / ROW) - 2;
      var to = {ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: found.length}[ev.key];
      if (to !== undefined) { ev.preventDefault(); activate(to); }
      if (ev.key === 'Enter' && active >= 0) { open(); wide.focus({preventScroll: true}); }
    });
    Object.keys(by).forEach(function (k) { by[k].addEventListener('change', filter); });
    $('#left-out').textContent = D.note;
    $('#operations').hidden = false;
    filter();
  }

  function columns() {
    function sum(c) {
      for (var i = 1; i < c.length; i++) c[i] += c[i - 1];
    }
    ['ops', 'holds', 'writes', 'notices', 'states'].forEach(function (t) { // an empty column is null
      Object.keys(D[t]).forEach(function (c) { D[t][c] = D[t][c] || []; });
    });
    [D.ops.call, D.ops.index, D.holds.op, D.writes.time, D.writes.index, D.notices.time, D.notices.index,
      D.states.from].forEach(sum);
    var O = D.ops, H = D.holds, T = D.writes, seen = 0;
    ['from', 'client', 'key', 'token', 'granted'].forEach(function (c) { H[c] = []; });
    H.op.forEach(function (o, i) {
      H.from[i] = O.call[o] + O.took[o]; H.client[i] = O.client[o]; H.key[i] = O.key[o]; H.token[i] = O.token[o];
      H.granted[i] = O.index[o] + O.ended[o];
    });
    T.seen = T.older.map(function (older, i) { return older ? T.seen[seen++] : T.token[i]; });
    T.found = T.found.map(function (more, i) { return T.read[i] + more; });
    ['faults', 'nodes', 'violations', 'steps'].forEach(function (t) { D[t] = D[t] || []; });
    D.violations.forEach(function (v) { v.events = v.events || []; });
  }
  function start(text) {
    D = JSON.parse(text);
    columns();
    from = D.shown[0]; until = D.shown[1]; key = D.key; chosen = D.worst;
    x0 = LEFT; x1 = RIGHT;
    D.keys.forEach(function (k, i) { picker.add(new Option(k, i)); });
    picker.value = key;
    order = D.violations.map(function (_, i) { return i; });
    order.sort(function (a, b) { return D.violations[a].from - D.violations[b].from || a - b; });
    all('.needs-script').forEach(function (e) { e.hidden = false; });
    all('[data-many]').forEach(function (e) { e.hidden = e.dataset.many === 'keys' ? D.keys.length < 2 : order.length < 2; });
    if (typeof lockDiagram === 'function' && document.querySelector('svg.diagram')) {
      diagram = lockDiagram({D: D, fill: fill, ink: ink, colorOf: colorOf, client: client, esc: esc, spent: spent, key: function () { return key; }});
      current = +($('.steps li[aria-current]') || {dataset: {n: 1}}).dataset.n;
      moment = stepsOf(chosen).length ? stepsOf(chosen)[current - 1].t : -1;
    }
    wire();
    list();
    followHash();
    performance.mark('ready');
    document.documentElement.dataset.ready = 'true';
  }
  var coded = atob(source.textContent), bytes = new Uint8Array(coded.length);
  for (var i = 0; i < coded.length; i++) bytes[i] = coded.charCodeAt(i);
  new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text().then(start);
})();
