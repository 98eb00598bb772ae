// The live part of the console: applies the patches of the server's event stream, keeps a window of long
// lists in the page, lets ages tick, shows the state of the connection, and handles the keyboard. Pages also
// work without it.
'use strict';

(() => {
  const WINDOW = 100; // rows of a list that are in the page
  const NEAR = 20; // rows before the window's edge at which the next window is requested
  const SCROLL_PAUSE = 120; // ms between two requests of windows
  const PAUSES = { first: 1000, longest: 15000 }; // ms before a failed stream is opened again
  const HIDDEN = 10000; // ms for which a hidden page keeps its stream: browsers open few connections to one server
  const SILENCE = 25000; // ms without an event after which a stream is taken for lost: the server sends one every 10 s
  const RELOAD_PAUSE = 10000; // ms between reloads of a page whose recipe is another one
  const MANY = 12; // a patch that changes more rows does not highlight them

  // Attributes that this script sets, and that the server's fragments lack.
  const OWN_ATTRIBUTES = new Set(['aria-rowindex', 'aria-posinset', 'aria-setsize', 'open']);

  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // ---- Clock and ages ----

  const clock = {
    at: 0,
    read: 0,
    set(now) {
      if (!Number.isFinite(now)) return;
      this.at = now;
      this.read = performance.now();
    },
    now() {
      return this.at + performance.now() - this.read;
    },
  };

  function age(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
    if (minutes === 0) return `${seconds}s`;
    if (hours === 0) return `${minutes}m ${seconds % 60}s`;
    if (days === 0) return `${hours}h ${minutes % 60}m`;
    return `${days}d ${hours % 24}h`;
  }

  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function tick() {
    for (const time of document.querySelectorAll('time[data-since]')) {
      const since = Number(time.dataset.since);
      if (!Number.isFinite(since)) continue;
      if (time.closest('[role="status"]')) {
        // A screen reader announces each change of a status, so its time is a fixed one.
        setText(time, new Date(since).toTimeString().slice(0, 8));
      } else {
        setText(time, (time.classList.contains('at-least') ? '≥' : '') + age(clock.now() - since));
      }
    }
  }

  // ---- Patching: changes only what differs, so that focus, selection and open details remain ----

  // Parses one element of a fragment that the server rendered. Scripts in it would not run.
  function parse(html) {
    const template = document.createElement('template');
    template.innerHTML = html;
    return template.content.firstElementChild;
  }

  function key(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return null;
    return node.id || (node.nodeName === 'A' && node.getAttribute('href')) || null;
  }

  function isSame(old, fresh) {
    return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && key(old) === key(fresh);
  }

  // Makes `old` equal to `fresh`, and returns whether anything changed.
  function morph(old, fresh) {
    if (!isSame(old, fresh)) {
      old.replaceWith(fresh);
      return true;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue === fresh.nodeValue) return false;
      old.nodeValue = fresh.nodeValue;
      return true;
    }
    const changed = morphAttributes(old, fresh);
    // The text of an age is this script's.
    if (!changed && old.nodeName === 'TIME' && old.dataset.since) return false;
    return morphChildren(old, fresh) || changed;
  }

  function morphAttributes(old, fresh) {
    let changed = false;
    for (const { name, value } of [...fresh.attributes]) {
      if (old.getAttribute(name) === value) continue;
      old.setAttribute(name, value);
      changed = true;
    }
    for (const { name } of [...old.attributes]) {
      if (fresh.hasAttribute(name) || OWN_ATTRIBUTES.has(name)) continue;
      old.removeAttribute(name);
      changed = true;
    }
    return changed;
  }

  function morphChildren(old, fresh) {
    const keyed = new Map();
    for (const child of old.childNodes) if (key(child) && !keyed.has(key(child))) keyed.set(key(child), child);
    let changed = false;
    let next = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const candidate = keyed.get(key(child)) ?? next;
      if (!candidate || !isSame(candidate, child)) {
        old.insertBefore(child, next);
        changed = true;
        continue;
      }
      keyed.delete(key(child));
      if (candidate !== next) {
        old.insertBefore(candidate, next);
        changed = true;
      }
      next = candidate.nextSibling;
      changed = morph(candidate, child) || changed;
    }
    while (next) {
      const after = next.nextSibling;
      next.remove();
      next = after;
      changed = true;
    }
    return changed;
  }

  const calm = matchMedia('(prefers-reduced-motion: reduce)');

  // Highlights rows that are new or changed.
  function flash(rows) {
    if (calm.matches || document.hidden || rows.length > MANY) return;
    // The variable follows when the colours become dark meanwhile.
    for (const row of rows) row.animate?.([{ backgroundColor: 'var(--flash)' }, {}], { duration: 1200, easing: 'ease-out' });
  }

  // ---- The virtual list `#rows`: one window of rows, with spacers in place of the others ----

  const list = {
    element: null,
    total: 0,
    from: 0,
    height: 0, // of one row, in pixels
    asked: null, // first row of the last window requested

    bind() {
      const element = byId('rows');
      if (!element?.dataset.total || element === this.element) return;
      this.element = element;
      this.total = Number(element.dataset.total) || 0;
      this.from = Number(element.dataset.from) || 0;
      this.measure();
    },

    rows() {
      return this.element ? [...this.element.children].filter((row) => !row.classList.contains('spacer')) : [];
    },

    measure() {
      const rows = this.rows();
      if (rows.length === 0) return;
      const top = rows[0].getBoundingClientRect().top;
      const height = (rows[rows.length - 1].getBoundingClientRect().bottom - top) / rows.length;
      if (height > 0) this.height = height;
    },

    // Sizes the spacers and numbers the rows for assistive technology.
    layout() {
      if (!this.element) return;
      const rows = this.rows();
      if (!this.height) this.measure();
      const below = Math.max(0, this.total - this.from - rows.length);
      this.space('above', rows.length > 0 ? this.from : 0);
      this.space('below', rows.length > 0 ? below : 0);
      const table = this.element.closest('table');
      table?.setAttribute('aria-rowcount', this.total + 1);
      rows.forEach((row, index) => {
        const place = this.from + index + 1;
        row.setAttribute(table ? 'aria-rowindex' : 'aria-posinset', table ? place + 1 : place);
        if (!table) row.setAttribute('aria-setsize', this.total);
      });
    },

    space(side, rows) {
      const edge = side === 'above' ? this.element.firstElementChild : this.element.lastElementChild;
      let spacer = edge?.dataset.side === side ? edge : null;
      if (rows === 0) return spacer?.remove();
      if (!spacer) {
        const isTable = this.element.nodeName === 'TBODY';
        spacer = document.createElement(isTable ? 'tr' : 'li');
        spacer.className = 'spacer';
        spacer.dataset.side = side;
        spacer.setAttribute('aria-hidden', 'true');
        if (isTable) spacer.append(document.createElement('td'));
        this.element[side === 'above' ? 'prepend' : 'append'](spacer);
      }
      spacer.style.height = `${rows * this.height}px`;
    },

    // Applies a patch. Returns false if it refers to rows that are not in the page.
    apply(patch, isFirst) {
      const known = new Map(this.rows().map((row) => [row.id, row]));
      const changed = [];
      for (const [id, html] of Object.entries(patch.rows ?? {})) {
        const fresh = parse(html);
        if (fresh?.id !== id) continue;
        const old = known.get(id);
        if (!old) known.set(id, fresh);
        if (!old || morph(old, fresh)) changed.push(known.get(id));
      }
      if (Number.isFinite(patch.total)) this.total = patch.total;
      if (Number.isFinite(patch.from)) this.from = patch.from;
      const isComplete = !patch.order || this.place(patch.order, known);
      this.layout();
      if (!isFirst) flash(changed);
      return isComplete;
    },

    place(order, known) {
      const wanted = order.map((id) => known.get(id)).filter(Boolean);
      const kept = new Set(wanted);
      for (const row of this.rows()) if (!kept.has(row)) row.remove();
      const first = this.element.firstElementChild;
      let next = first?.dataset.side === 'above' ? first.nextElementSibling : first;
      for (const row of wanted) {
        if (row === next) next = next.nextElementSibling;
        else this.element.insertBefore(row, next);
      }
      return wanted.length === order.length;
    },

    // Returns the first row of the window to request, or null if the present one is good.
    wanted() {
      const count = this.rows().length;
      if (!this.element || !this.height || count === 0) return null;
      const top = this.element.getBoundingClientRect().top;
      const within = (row) => Math.min(this.total, Math.max(0, row));
      const first = within(Math.floor(-top / this.height));
      const last = within(Math.ceil((innerHeight - top) / this.height));
      const end = this.from + count;
      const isNear = (this.from > 0 && first < this.from + NEAR) || (end < this.total && last > end - NEAR);
      const centred = Math.round((first + last - WINDOW) / 2);
      const from = Math.min(Math.max(0, centred), Math.max(0, this.total - WINDOW));
      return isNear && from !== this.from && from !== this.asked ? from : null;
    },

    // Remembers where the visible rows are, and returns a function that scrolls them back there.
    hold() {
      if (!this.element || this.element.getBoundingClientRect().top >= 0) return () => {};
      const places = this.rows()
        .map((row) => [row, row.getBoundingClientRect()])
        .filter(([, place]) => place.bottom > 0 && place.top < innerHeight)
        .map(([row, place]) => [row, place.top]);
      return () => {
        const place = places.find(([row]) => row.isConnected);
        const moved = place ? place[0].getBoundingClientRect().top - place[1] : 0;
        if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: 'instant' });
      };
    },
  };

  // ---- State of the connection ----

  const connection = {
    served: null, // the element as the server rendered it last

    offline(text) {
      const element = byId('connection');
      if (element) {
        this.served ??= element.cloneNode(true);
        element.className = 'connection is-offline';
        setText(element, text);
      }
      this.mark();
    },

    // Shows what the server said last. A patch may replace it.
    online() {
      const element = byId('connection');
      if (element && this.served) morph(element, this.served);
      this.served = null;
    },

    mark() {
      root.classList.toggle('is-stale', byId('connection')?.matches('.is-stale, .is-offline') ?? false);
    },
  };

  // ---- The event stream ----

  // Kind of the recipe for which the page was drawn.
  const kind = byId('about')?.dataset.kind;

  // Returns the address of the stream whose view begins at the given row.
  function withFrom(events, from) {
    const [path, query] = events.split('?', 2);
    const parameters = new URLSearchParams(query);
    const [viewPath, viewQuery] = (parameters.get('view') ?? '/').split('?', 2);
    const view = new URLSearchParams(viewQuery);
    view.set('from', from);
    parameters.set('view', `${viewPath}?${view}`);
    return `${path}?${parameters}`;
  }

  const stream = {
    address: document.body.dataset.events,
    source: null,
    isFirst: true, // no patch has arrived on this stream
    pause: PAUSES.first,
    timer: 0,
    silence: 0, // timer that ends a stream without events
    heard: 0, // time of the last event

    open() {
      this.close();
      if (!this.address) return;
      const source = new EventSource(this.address);
      this.source = source;
      this.isFirst = true;
      this.listen();
      source.addEventListener('patch', (event) => {
        if (source === this.source) this.receive(event.data);
      });
      source.addEventListener('tick', (event) => {
        if (source !== this.source) return;
        this.listen();
        this.pause = PAUSES.first;
        clock.set(JSON.parse(event.data).now);
      });
      source.addEventListener('error', () => {
        if (source === this.source) this.fail();
      });
    },

    // A connection may be lost without an error, for example while a laptop sleeps.
    listen() {
      this.heard = Date.now();
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.fail(), SILENCE);
    },

    close() {
      clearTimeout(this.timer);
      clearTimeout(this.silence);
      this.timer = 0;
      this.source?.close();
      this.source = null;
    },

    // The browser's own reconnection has a fixed pause, and gives up after an error of HTTP.
    fail() {
      this.close();
      list.asked = null;
      // The service has closed its client, and may still serve pages.
      if (byId('connection')?.dataset.state === 'closed') this.pause = PAUSES.longest;
      else connection.offline('Offline, reconnecting');
      this.timer = setTimeout(() => this.open(), this.pause * (0.8 + 0.4 * Math.random()));
      this.pause = Math.min(this.pause * 2, PAUSES.longest);
      reloadIfSignedOut();
    },

    receive(data) {
      let patch;
      try {
        patch = JSON.parse(data);
      } catch (error) {
        console.error('docent console: cannot parse a patch', error);
        return;
      }
      const isFirst = this.isFirst;
      this.isFirst = false;
      this.listen();
      // Another recipe is at the path, or the first one: the page has other parts.
      const now = patch.blocks?.about && parse(patch.blocks.about)?.dataset.kind;
      if (now && now !== kind && reloadRarely()) return;
      connection.online();
      const isComplete = apply(patch, isFirst);
      connection.mark();
      // A patch that builds on rows that this page lacks: a new stream begins with everything.
      if (!isComplete && !isFirst) this.open();
      requestWindow();
    },
  };

  let reloadTimer = 0;

  // Reloads the page. If this was done just now, because a lock is held for moments only, reloads it after a
  // pause if the page still has the parts of another recipe.
  function reloadRarely() {
    const since = Date.now() - Number(sessionStorage.getItem('reloaded'));
    if (since >= 0 && since < RELOAD_PAUSE) {
      clearTimeout(reloadTimer);
      reloadTimer = setTimeout(() => {
        const now = byId('about')?.dataset.kind;
        if (now && now !== kind) reloadRarely();
      }, RELOAD_PAUSE - since);
      return false;
    }
    sessionStorage.setItem('reloaded', Date.now());
    location.reload();
    return true;
  }

  // An event stream does not reveal its status, so a request finds out whether to sign in again.
  async function reloadIfSignedOut() {
    try {
      const reply = await fetch(location.href, { method: 'HEAD', redirect: 'manual', cache: 'no-store' });
      if (reply.type === 'opaqueredirect' || reply.status === 401) location.reload();
    } catch {
      // The console cannot be reached. The stream is opened again after its pause.
    }
  }

  // Applies a patch, and returns false if a list refers to rows that are not in the page.
  function apply(patch, isFirst) {
    const focused = document.activeElement;
    const place = list.rows().findIndex((row) => row.contains(focused));
    const restoreScroll = list.hold();
    clock.set(patch.now);
    for (const [id, html] of Object.entries(patch.blocks ?? {})) {
      const fresh = byId(id) && parse(html);
      if (fresh) morph(byId(id), fresh);
    }
    list.bind();
    const rows = list.element?.isConnected ? patch.lists?.rows : undefined;
    const isComplete = !rows || list.apply(rows, isFirst);
    tick();
    restoreScroll();
    restoreFocus(focused, place);
    return isComplete;
  }

  // Returns focus to an element that was moved, or gives it to the one in its place.
  function restoreFocus(focused, place) {
    if (!focused || focused === document.body || focused === document.activeElement) return;
    const candidates = [focused, focused.id && byId(focused.id), list.rows()[place]?.querySelector('a'), byId('main')];
    candidates.find((element) => element?.isConnected)?.focus({ preventScroll: true });
  }

  let windowTimer = 0;

  // Requests another window of the list when the visible rows come near its edge.
  function requestWindow() {
    if (windowTimer || list.wanted() === null) return;
    windowTimer = setTimeout(() => {
      windowTimer = 0;
      const from = list.wanted();
      if (from === null || !stream.source) return;
      list.asked = from;
      stream.address = withFrom(stream.address, from);
      stream.open();
    }, SCROLL_PAUSE);
  }

  // ---- Pages that are hidden ----

  let hiddenTimer = 0;

  function suspend() {
    stream.close();
    connection.offline('Paused');
  }

  function resume() {
    clearTimeout(hiddenTimer);
    if (!stream.source || Date.now() - stream.heard > SILENCE) {
      stream.pause = PAUSES.first;
      stream.open();
    }
    tick();
  }

  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = setTimeout(suspend, HIDDEN);
    else resume();
  });
  addEventListener('pagehide', suspend);
  addEventListener('pageshow', (event) => {
    for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent;
    if (event.persisted && !document.hidden) resume();
  });
  addEventListener('online', () => document.hidden || resume());

  // ---- Keyboard ----

  const PAGES = {
    o: '/', l: '/locks', e: '/elections', s: '/services', q: '/queues', c: '/config', m: '/members', n: '/sessions',
    t: '/tree',
  };

  let isGo = false; // the last key was `g`

  function go(page) {
    const home = new URL(document.querySelector('a.brand')?.href ?? '/', location.href).pathname;
    location.assign(page === '/' ? home : home.replace(/\/$/, '') + page);
  }

  function search() {
    byId('search')?.focus();
    byId('search')?.select();
  }

  // Focuses the link of the next or previous row.
  function step(by) {
    const rows = list.rows();
    const links = rows.length ? rows.map((row) => row.querySelector('a')) : document.querySelectorAll('main a.path');
    const present = [...links].filter(Boolean);
    const row = document.activeElement?.closest('#rows > *');
    const at = present.findIndex((link) => link === document.activeElement || (row && row.contains(link)));
    const visible = present.findIndex((link) => link.getBoundingClientRect().top > 0);
    const next = at < 0 ? Math.max(0, visible) : Math.min(Math.max(0, at + by), present.length - 1);
    present[next]?.focus({ preventScroll: true });
    present[next]?.scrollIntoView({ block: 'nearest' });
  }

  function press(event) {
    const target = event.target;
    const isTyping = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.nodeName);
    if (event.key === 'Escape' && target.id === 'search') target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping) return false;
    const dialog = byId('keys');
    if (dialog?.open && event.key !== '?') return false;
    const wasGo = isGo;
    isGo = event.key === 'g' && !wasGo;
    if (wasGo && Object.hasOwn(PAGES, event.key)) go(PAGES[event.key]);
    else if (event.key === '/') search();
    else if (event.key === 'j') step(1);
    else if (event.key === 'k') step(-1);
    else if (event.key === '?' && dialog) dialog.open ? dialog.close() : dialog.showModal();
    else return false;
    return true;
  }

  document.addEventListener('keydown', (event) => {
    if (press(event)) event.preventDefault();
  });

  // A text that is cut off is shown in full as a tooltip.
  document.addEventListener('mouseover', (event) => {
    const cell = event.target.closest?.('.list :is(th, td), .contender > *, .changes > li > *');
    if (!cell || (cell.title && !cell.dataset.cut)) return;
    const isCut = cell.scrollWidth > cell.clientWidth;
    cell.title = isCut ? cell.textContent.trim() : '';
    cell.dataset.cut = 'cut';
  });

  // A second click would ask for the same action again.
  const RESEND = 5000; // ms after which a form without an answer may be sent again

  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (form.method !== 'post') return;
    if (form.dataset.sent) event.preventDefault();
    else setTimeout(() => delete form.dataset.sent, RESEND);
    form.dataset.sent = 'sent';
  });

  // ---- Start ----

  root.classList.add('has-script');
  clock.set(Number(document.body.dataset.now) || Date.now());
  list.bind();
  list.layout();
  if (list.from > 0) scrollBy({ top: list.from * list.height, behavior: 'instant' });
  connection.mark();
  tick();
  setInterval(() => document.hidden || tick(), 1000);
  addEventListener('scroll', requestWindow, { passive: true });
  addEventListener('resize', () => {
    list.height = 0;
    list.layout();
    requestWindow();
  });
  // A page that is opened in the background waits until it is seen.
  if (document.hidden) connection.offline('Paused');
  else stream.open();
})();
