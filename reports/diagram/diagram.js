// lockDiagram moves the drawing of nodes and clients to any instant, as svg.go and sentence.go draw and describe it. The
// states of nodes and clients are in #moving, see moving.go; records and beliefs in the data D of the timeline.
function lockDiagram(env) {
  'use strict';
  var svg = document.querySelector('svg.diagram'), source = document.getElementById('moving');
  if (!svg || !source) return null;
  var D = env.D, S = JSON.parse(source.textContent), held = {}, shownKey = -1, MAX = 25, NAME = 12;
  var cards = {}, slots = [];
  [].slice.call(svg.querySelectorAll('.card')).forEach(function (g) {
    var at = g.getAttribute('transform').match(/\d+/g).map(Number), box = g.querySelector('.box');
    var card = {g: g, x: at[0], y: at[1], w: +box.getAttribute('width'), h: +box.getAttribute('height')};
    cards[g.dataset.id] = card;
    if (/^client:/.test(g.dataset.id)) slots.push(card);
  });
  function target(c) { return 'client:' + c; }
  // pick gives cards to these clients, and then to others of the run.
  function pick(clients) {
    D.ops.client.slice().sort(function (a, b) { return a - b; }).forEach(function (c) {
      if (clients.length < slots.length && clients.indexOf(c) < 0) clients.push(c);
    });
    slots.forEach(function (card) { delete cards[card.g.dataset.id]; });
    slots.forEach(function (card, i) {
      var c = clients[i];
      card.g.style.display = c === undefined ? 'none' : '';
      if (c === undefined) return;
      card.g.dataset.id = target(c);
      card.g.querySelector('.color').setAttribute('fill', env.fill(env.colorOf(c)));
      cards[target(c)] = card;
    });
  }
  function clients() {
    return slots.filter(function (card) { return card.g.style.display !== 'none'; }).map(function (card) { return +card.g.dataset.id.slice(7); });
  }
  function stateAt(states, t) {
    var found = {};
    (states || []).forEach(function (s) { if (s.t <= t) found = s; });
    return {state: found.s || '', role: found.r || '', faults: found.f || '', record: '', owner: -1, change: false};
  }

  // Records: rows of D.states by node, for one key.
  function rows(node) {
    var key = env.key(), T = D.states;
    if (key !== shownKey) {
      held = {};
      T.from.forEach(function (_, i) { if (T.key[i] === key) (held[T.node[i]] = held[T.node[i]] || []).push(i); });
      shownKey = key;
    }
    return held[node] || [];
  }
  function end(i) { return D.states.from[i] + D.states.length[i]; }
  function rowAt(list, t) {
    var found = -1;
    list.forEach(function (i) { if (D.states.from[i] <= t) found = i; });
    return found >= 0 && (t < end(found) || t <= end(found) - D.states.after[found]) ? found : -1;
  }
  function holder(i) { return i < 0 ? {label: 'absent', client: -1} : D.states.holders[D.states.holder[i]]; }
  function addRecord(card, node, t) {
    var list = rows(node), T = D.states, n = D.nodes[node], seen = t, next, later;
    (n.up || []).forEach(function (w) { if (w[0] <= t) seen = w[1]; }); // the last sample before a pause of the samples
    var at = Math.min(t, seen), i = rowAt(list, at), who = holder(i);
    card.record = S.word + (i < 0 ? ' absent' : ': ' + who.label);
    card.owner = who.client;
    if (i >= 0 && at >= end(i) - T.after[i] && T.after[i]) next = end(i);
    if (i < 0) {
      list.forEach(function (k) {
        if (T.from[k] > at && T.before[k] && T.from[k] - T.before[k] <= at && next === undefined) next = T.from[k];
      });
    }
    if (next === undefined || (n.down || []).some(function (w) { return w[0] === next; })) return;
    later = holder(rowAt(list, next));
    if (later.label === who.label) return;
    card.record = S.word + ': ' + who.label + ' → ' + later.label;
    card.owner = later.client;
    card.change = true;
  }

  // Beliefs, as the operations of the clients show them.
  function beliefs(t) {
    var all = {}, ended = {}, key = env.key(), H = D.holds, O = D.ops, N = D.notices, i;
    for (i = 0; i < N.time.length; i++) { // with its process, a client forgets its requests
      if (N.names[N.name[i]] === 'crash' && N.time[i] <= t) ended[N.client[i]] = N.time[i];
    }
    function of(c) { return all[c] = all[c] || {permits: 0, mode: 0}; }
    for (i = 0; i < H.from.length; i++) {
      if (H.key[i] !== key || H.from[i] > t || t >= H.from[i] + H.length[i] && H.ends[H.end[i]] !== 'still held at the end') continue;
      var b = of(H.client[i]);
      b.holds = true;
      b.permits += H.permits[i];
      b.mode = Math.max(b.mode, H.mode[i]);
      b.over = H.valid[i] > 0 && H.from[i] + H.valid[i] <= t;
    }
    for (i = 0; i < O.call.length; i++) {
      if (O.key[i] !== key || O.call[i] > t || O.call[i] < ended[O.client[i]]) continue;
      var name = O.names[O.name[i]], takes = name === 'acquire' || name === 'try', ends = name === 'release', who = of(O.client[i]);
      var pending = !(t >= O.call[i] + env.spent(i));
      who.unanswered = !pending && O.out[i] === 4 && (takes || ends); // its outcome is unknown
      if (!pending) continue;
      who.waits = who.waits || takes;
      who.releases = who.releases || ends;
    }
    return all;
  }
  function beliefText(b) {
    if (!b) return 'no request';
    if (b.holds) {
      return 'believes it holds' + (b.permits ? ', ' + b.permits + (b.permits > 1 ? ' permits' : ' permit') : ['', ', reading', ', writing'][b.mode]) +
        (b.over ? ', validity over' : '');
    }
    return b.releases ? 'releases' : b.waits ? 'waits' : b.unanswered ? 'asked, outcome unknown' : 'no request';
  }

  function frame(t) {
    var f = {nodes: [], sentinels: [], clients: [], links: [], loose: []}, believed = beliefs(t);
    S.nodes = S.nodes || []; S.sentinels = S.sentinels || []; S.faults = S.faults || [];
    S.nodes.forEach(function (n, i) {
      var card = stateAt(n.states, t);
      card.name = card.id = n.name;
      if (card.role && !S.why) addRecord(card, i, t);
      f.nodes.push(card);
    });
    S.sentinels.forEach(function (n) {
      var card = stateAt(n.states, t);
      card.name = card.id = n.name;
      f.sentinels.push(card);
    });
    clients().forEach(function (c) {
      var card = stateAt(S.clients[target(c)], t);
      card.name = env.client(c); card.id = target(c); card.client = true;
      card.record = beliefText(believed[c]);
      if (card.record === 'no request' && card.state.split(', ').indexOf('dead') >= 0) card.record = '';
      f.clients.push(card);
    });
    S.faults.forEach(function (x) {
      if (x.a > t || x.b >= 0 && t >= x.b) return;
      if (x.on && x.on.every(function (id) { return cards[id]; })) return;
      if (x.from && cards[x.from] && cards[x.to]) f.links.push(x);
      else f.loose.push(x.text);
    });
    return f;
  }

  // The sentence, as sentence.go.
  function predicate(card) {
    var text = [card.state, card.role, card.record].filter(function (s) { return s && !(card.client && s === 'no request'); }).join(', ');
    return (!card.state && card.faults ? text + ' (' + card.faults + ')' : text).trim();
  }
  function grouped(list, say) {
    var order = [], names = {};
    list.forEach(function (card) {
      var text = say(card);
      if (!text) return;
      if (!names[text]) { names[text] = []; order.push(text); }
      names[text].push(card.name);
    });
    return order.map(function (text) {
      var who = names[text], last = who.length - 1;
      if (!last) return who[0] + ' ' + text;
      return who.slice(0, last).join(', ') + ' and ' + who[last] + ' ' + text.replace(/holds, \d+ permits?/, '$& each').replace('believes it holds', 'believe they hold')
        .replace('waits', 'wait').replace('releases', 'release').replace('does not reply', 'do not reply');
    });
  }
  function sentence(f) {
    return grouped(f.nodes, predicate).concat(grouped(f.sentinels, function (card) { return card.state; }),
      f.links.map(function (x) { return x.text; }), f.loose, S.why ? ['records of the lock not sampled: ' + S.why] : [],
      grouped(f.clients, predicate), S.rest || []).join(' · ');
  }

  // The drawing, as svg.go.
  function cut(s, max) { return Array.from(s).length > max ? Array.from(s).slice(0, max - 1).join('') + '…' : s; }
  function write(card, name, text) { card.g.querySelector(name).textContent = cut(text, MAX); }
  function look(card) {
    var looks = ['card'];
    card.state.split(', ').forEach(function (s) {
      if (s === 'down' || s === 'dead' || s === 'does not reply') looks.push('gone');
      else if (s === 'paused') looks.push('still');
      else if (s === 'not sampled') looks.push('unseen');
      else if (/^cut off from/.test(s)) looks.push('apart');
      else if (s) looks.push('alone');
    });
    if (card.record === 'no request') looks.push('quiet');
    return looks.join(' ');
  }
  function drawCard(card) {
    var at = cards[card.id], parts = card.client ? card.record.split(/, (.*)/) : [card.record.replace(S.word + ': ', '')];
    var word = card.state.split(', ')[0].split(' from ')[0];
    at.g.setAttribute('class', look(card));
    at.g.querySelector('title').textContent = (card.name + ' ' + predicate(card)).trim() + (card.state && card.faults ? ' (' + card.faults + ')' : '');
    var badge = [card.role, word].filter(Boolean).join(', ');
    write(at, '.name', cut(card.name, badge ? NAME : NAME + 5));
    write(at, '.badge', badge);
    if (!at.g.querySelector('.what')) return;
    write(at, '.what', parts[0]);
    write(at, '.why', parts[1] || card.faults);
    if (card.client) return;
    var color = env.colorOf(card.owner), pill = at.g.querySelector('.pill');
    pill.setAttribute('fill', card.owner < 0 ? 'none' : env.fill(color));
    pill.setAttribute('class', card.record ? 'pill' : 'pill bare');
    at.g.querySelector('.what').setAttribute('fill', card.owner < 0 ? 'var(--ink)' : env.ink(color));
  }
  function lineOf(node) {
    var from = cards[target(node.owner)], to = cards[node.id];
    if (node.owner < 0 || !from) return '';
    return '<path class="says' + (node.change ? ' changing' : '') + '" stroke="' + env.fill(env.colorOf(node.owner)) + '" d="M' +
      (from.x + from.w) + ' ' + (from.y + from.h / 2) + 'L' + to.x + ' ' + (to.y + 28) + '"/>';
  }
  function linkOf(x) {
    var a = cards[x.from], b = cards[x.to], ax = a.x + a.w, ay = a.y + a.h / 2, bx = b.x + b.w, by = b.y + b.h / 2;
    var mx = ax + 11, my = Math.floor((ay + by) / 2);
    var path = 'M' + ax + ' ' + ay + 'C' + (ax + 14) + ' ' + ay + ' ' + (bx + 14) + ' ' + by + ' ' + bx + ' ' + by;
    if (a.x !== b.x) {
      bx = b.x;
      if (ax > bx) { ax = a.x; bx = b.x + b.w; }
      mx = Math.floor((ax + bx) / 2);
      path = 'M' + ax + ' ' + ay + 'L' + bx + ' ' + by;
    }
    return '<g class="link' + (x.late ? ' late' : '') + '"><title>' + env.esc(x.text) + '</title><path d="' + path + '"/><path class="x" d="M' + (mx - 4) + ' ' + (my - 4) +
      'l9 9m0 -9l-9 9"/></g>';
  }
  // show draws the instant t and returns its sentence.
  function show(t) {
    var f = frame(t), text = sentence(f);
    f.nodes.concat(f.sentinels, f.clients).forEach(drawCard);
    svg.querySelector('.lines').innerHTML = f.nodes.map(lineOf).concat(f.links.map(linkOf)).join('');
    svg.setAttribute('aria-label', text);
    return text;
  }
  return {show: show, pick: pick};
}
