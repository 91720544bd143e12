package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// mapper makes our events out of those of other suites. It is the one place
// where their words get a meaning; what is in doubt is decided by a [Reading].
type mapper struct {
	reading  ReadOptions
	matter   map[Assumption]int // events that each assumption would change
	problems []Problem
	untimed  int // events without a time
	next     int64
	last     time.Duration
	event    Event
	value    Value
	keyPaths []path // where the key may be, the fencing number, the owner
	tokPaths []path
	ownPaths []path

	names   map[string]Process // processes that have no number
	named   []string           // the same in order
	great   bool               // a number was firstNamed or more
	keys    map[Process]string // what each process named last
	open    map[Process]bool   // has an operation under way
	unknown map[Process]bool   // its last operation is of unknown outcome
	life    map[Process]int    // how often its number was used again
}

// path is the steps to a field of an event.
type path []string

// pathsTo is the path that was asked for, or else the usual ones.
func pathsTo(asked string, usual ...string) (paths []path) {
	if asked != "" {
		usual = []string{asked}
	}
	for _, p := range usual {
		paths = append(paths, strings.Split(p, "."))
	}
	return paths
}

func newMapper(r ReadOptions) *mapper {
	return &mapper{
		keyPaths: pathsTo(r.Key, "key", "value.key", "value.lock"),
		tokPaths: pathsTo(r.Token, "value.token", "value.fence", "value.revision"),
		ownPaths: pathsTo(r.Owner, "value.owner"),
		reading:  r, matter: make(map[Assumption]int), names: make(map[string]Process), keys: make(map[Process]string),
		open: make(map[Process]bool), unknown: make(map[Process]bool), life: make(map[Process]int),
	}
}

func (m *mapper) assumes(a Assumption) bool { return slices.Contains(m.reading.Assume, a) }

func (m *mapper) problem(line int, format string, args ...any) {
	if len(m.problems) < maxProblems {
		m.problems = append(m.problems, Problem{Index: m.event.Index, Line: line, Text: fmt.Sprintf(format, args...)})
	}
}

// see makes an event of a form; it is overwritten by the next call.
func (m *mapper) see(form edn.Value, line int) (*Event, error) {
	form = form.Bare()
	if form.Kind != edn.Map {
		return nil, fmt.Errorf("an event is a map with :type, :process and :f, not %.40s", form.String())
	}
	e := &m.event
	*e = Event{}
	if err := m.head(form, e); err != nil {
		return nil, err
	}
	if err := m.clock(form, e); err != nil {
		return nil, err
	}
	e.Error = causeOf(form)
	if e.Process == Nemesis {
		e.Value = faultOf(form)
		key, _ := form.Get("key")
		e.Key = plainText(key)
		return e, nil
	}
	if err := m.body(form, e); err != nil {
		return nil, err
	}
	m.understand(form, e)
	m.follow(e, line)
	return e, nil
}

// head reads who did what.
func (m *mapper) head(form edn.Value, e *Event) (err error) {
	word, err := wordOf(form, "type")
	if err != nil {
		return err
	}
	if e.Type, err = parseType(word); err != nil {
		return err
	}
	process, ok := form.Get("process")
	if !ok {
		return errors.New("event without :process")
	}
	if e.Process, err = m.process(process); err != nil {
		return err
	}
	if e.F, err = wordOf(form, "f"); err != nil {
		return err
	}
	if e.F = strings.TrimPrefix(e.F, ":"); e.Process != Nemesis {
		e.F = canonicalOp(e.F)
	}
	if e.F == "" {
		return errors.New("event without :f")
	}
	return nil
}

func wordOf(form edn.Value, name string) (string, error) {
	v, ok := form.Get(name)
	if !ok {
		return "", fmt.Errorf("event without :%s", name)
	}
	word, ok := v.Word()
	if !ok {
		return "", fmt.Errorf(":%s is %.40s, not a word", name, v.String())
	}
	return word, nil
}

func (m *mapper) process(v edn.Value) (Process, error) {
	if n, ok := v.Integer(); ok {
		if n < 0 || n > math.MaxInt32 || n >= int64(firstNamed) && len(m.named) > 0 {
			return 0, fmt.Errorf(":process is %d: want a number from 0 on (below %d where others have names), or :nemesis",
				n, firstNamed)
		}
		m.great = m.great || n >= int64(firstNamed)
		return Process(n), nil
	}
	word, ok := v.Word()
	if !ok {
		return 0, fmt.Errorf(":process is %.40s: want a number, a name or :nemesis", v.String())
	}
	word = strings.TrimPrefix(word, ":")
	if word == "nemesis" {
		return Nemesis, nil
	}
	if n, err := strconv.ParseUint(word, 10, 31); err == nil && n < uint64(firstNamed) {
		return Process(n), nil
	}
	p, known := m.names[word]
	if !known && m.great {
		return 0, fmt.Errorf(":process is %.40q: names, and numbers from %d on, cannot be told apart in one history",
			word, firstNamed)
	}
	if !known {
		p = firstNamed + Process(len(m.names))
		m.names[word] = p
		m.named = append(m.named, word)
	}
	return p, nil
}

// clock reads index and time. An event without a time happened when its turn came.
func (m *mapper) clock(form edn.Value, e *Event) error {
	e.Index = m.next
	if v, ok := form.Get("index"); ok && v.Bare().Kind != edn.Nil {
		n, ok := v.Integer()
		if !ok {
			return fmt.Errorf(":index is %.40s: want a whole number that fits into 64 bits", v.String())
		}
		e.Index = n
	}
	m.next = max(e.Index, m.next) + 1
	v, ok := form.Get("time")
	if !ok || v.Bare().Kind == edn.Nil {
		m.untimed++
		m.last = max(m.last, time.Duration(m.next-1))
		e.Time = m.last
		return nil
	}
	unit := max(m.reading.Unit, 1)
	if n, ok := v.Integer(); ok && n < math.MaxInt64/int64(unit) && n > math.MinInt64/int64(unit) {
		e.Time = time.Duration(n) * unit
	} else if f, ok := v.Float(); ok && math.Abs(f)*float64(unit) < math.MaxInt64 {
		e.Time = time.Duration(f * float64(unit))
	} else {
		return fmt.Errorf(":time is %.40s: want a number of %s since the start", v.String(),
			strings.TrimPrefix(unit.String(), "1"))
	}
	m.last = max(m.last, e.Time)
	return nil
}

// body reads what was asked or answered, and about what.
func (m *mapper) body(form edn.Value, e *Event) error {
	value := &m.value
	err := valueOf(form, value)
	if err != nil {
		return err
	}
	if err := value.sensible(); err != nil {
		return err
	}
	if value.Token, value.Zero, err = m.token(form); err != nil {
		return err
	}
	value.Zero = value.Zero && e.Type == OK && (e.F == Acquire || e.F == Try)
	value.Owner = m.owner(form, e.Process)
	if *value != (Value{}) {
		e.Value = value
	}
	e.Key = m.keyOf(form)
	if e.Key != "" {
		m.keys[e.Process] = e.Key
	} else if m.reading.Key != "" || canonicalOp(e.F) == e.F && opOf(e.F) != OpOther {
		e.Key = m.keys[e.Process]
	}
	return nil
}

func (m *mapper) keyOf(form edn.Value) string {
	v, _ := find(form, m.keyPaths)
	return plainText(v)
}

// owner is who e acts for; empty leaves it to the process.
func (m *mapper) owner(form edn.Value, p Process) string {
	if m.reading.Owner != "process" {
		if v, ok := find(form, m.ownPaths); ok || m.reading.Owner != "" {
			return plainText(v)
		}
	}
	if n := m.life[p]; n > 0 {
		return fmt.Sprintf("process %d, life %d", p, n+1)
	}
	if n := int(p - firstNamed); n >= 0 && n < len(m.named) {
		return m.named[n]
	}
	return ""
}

func (m *mapper) token(form edn.Value) (token uint64, zero bool, err error) {
	v, ok := find(form, m.tokPaths)
	if !ok || v.Bare().Kind == edn.Nil {
		return 0, false, nil
	}
	n, ok := v.Unsigned()
	if word, isWord := v.Word(); isWord {
		n, err = strconv.ParseUint(word, 10, 64)
		if ok = err == nil; !ok && m.reading.Token == "" { // a token that is a word is no fencing number
			return 0, false, nil
		}
	}
	if !ok {
		return 0, false, fmt.Errorf("the fencing number is %.40s: want a whole number from 0 on", v.String())
	}
	return n, n == 0, nil
}

// find follows the first path that leads anywhere. A step is a name in a map,
// or a number in a vector or in a text with commas.
func find(form edn.Value, paths []path) (edn.Value, bool) {
	for _, p := range paths {
		v, ok := form, true
		for _, step := range p {
			if v, ok = enter(v.Bare(), step); !ok {
				break
			}
		}
		if ok {
			return v, true
		}
	}
	return edn.Value{}, false
}

func enter(v edn.Value, step string) (edn.Value, bool) {
	if v.Kind == edn.Map {
		return v.Get(step)
	}
	if v.Kind == edn.Nil || step == "" || step[0] < '0' || step[0] > '9' {
		return v, false
	}
	n, err := strconv.Atoi(step)
	if err != nil {
		return v, false
	}
	switch v.Kind {
	case edn.Vector, edn.List:
		if n < len(v.Items) {
			return v.Items[n], true
		}
	case edn.String:
		if parts := strings.Split(v.Text, ","); n < len(parts) {
			return edn.Value{Kind: edn.String, Text: strings.TrimSpace(parts[n])}, true
		}
	}
	return edn.Value{}, false
}

// plainText is a name as it stands, or any other value in EDN; nil is empty.
func plainText(v edn.Value) string {
	v = v.Bare()
	if v.Kind == edn.Nil {
		return ""
	}
	if word, ok := v.Word(); ok {
		return word
	}
	return v.String()
}
