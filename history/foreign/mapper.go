package foreign

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/history/internal/input"
)

// mapper turns the events of other suites into ours. [Options] resolve ambiguities.
type mapper struct {
	options  Options
	affected map[Assumption]int // events that each assumption would change
	problems []history.Problem
	kinds    input.Kinds
	untimed  int // events without a time
	valued   valueKeys
	next     int64
	last     time.Duration
	scratch  history.Event // returned by event
	value    history.Value // of scratch
	keys     []path        // where the key may be
	tokens   []path
	owners   []path

	named        map[string]history.Process // processes without a number
	processNames []string                   // the same in order
	highNumber   bool                       // a process number was input.FirstNamed or more
	processes    map[history.Process]*processState
}

// processState is the state on which the next event of a process may depend.
type processState struct {
	key         string   // of its last operation that named one
	asked       []string // keys of its last operation
	open        bool     // an operation has no completion
	unknown     bool     // its last operation has an unknown outcome
	incarnation int      // how often its number was reused
}

func (m *mapper) state(p history.Process) *processState {
	s := m.processes[p]
	if s == nil {
		s = new(processState)
		m.processes[p] = s
	}
	return s
}

// path is the steps to a field of an event.
type path []string

// pathsTo returns the requested paths, or else the default ones.
func pathsTo(requested string, defaults ...string) (paths []path) {
	if requested != "" {
		defaults = strings.Split(requested, ",")
	}
	for _, p := range defaults {
		paths = append(paths, strings.Split(p, "."))
	}
	return paths
}

func newMapper(o Options) *mapper {
	return &mapper{
		options: o, affected: make(map[Assumption]int), kinds: make(input.Kinds),
		keys:   pathsTo(o.Key, "key", "value.key", "value.lock"),
		tokens: pathsTo(o.Token, "value.token", "value.fence", "value.revision"),
		owners: pathsTo(o.Owner, "value.owner"),
		named:  make(map[string]history.Process), processes: make(map[history.Process]*processState),
	}
}

func (m *mapper) assumes(a Assumption) bool { return slices.Contains(m.options.Assume, a) }

func (m *mapper) problem(line int, format string, args ...any) {
	p := history.Problem{Index: m.scratch.Index, Line: line, Text: fmt.Sprintf(format, args...)}
	input.Add(m.kinds, &m.problems, format, p, func(p *history.Problem) *string { return &p.Text })
}

// event turns a form into an event, which the next call overwrites.
func (m *mapper) event(form edn.Value, line int) (*history.Event, error) {
	form = form.Untagged()
	if form.Kind != edn.Map {
		return nil, fmt.Errorf("expected an event (a map with :type, :process and :f), got %.40s", form.String())
	}
	e := &m.scratch
	*e = history.Event{}
	if err := m.head(form, e); err != nil {
		return nil, err
	}
	if err := m.clock(form, e); err != nil {
		return nil, err
	}
	e.Error = errorOf(form)
	if e.Process == history.Nemesis {
		e.Value = faultOf(form)
		key, _ := form.Get("key")
		e.Key = plainText(key)
		return e, nil
	}
	if err := m.body(form, e); err != nil {
		return nil, err
	}
	m.interpret(form, e)
	m.trackProcess(e, line)
	return e, nil
}

// head reads type, process and operation.
func (m *mapper) head(form edn.Value, e *history.Event) (err error) {
	word, err := wordOf(form, "type")
	if err != nil {
		return err
	}
	if err := e.Type.UnmarshalText([]byte(word)); err != nil {
		return err
	}
	process, ok := form.Get("process")
	if !ok {
		return errors.New(`event without "process"`)
	}
	if e.Process, err = m.process(process); err != nil {
		return err
	}
	if e.F, err = wordOf(form, "f"); err != nil {
		return err
	}
	if e.F = strings.TrimPrefix(e.F, ":"); e.Process != history.Nemesis {
		e.F = canonicalOp(e.F)
	}
	if e.F == "" {
		return errors.New(`event without "f"`)
	}
	return nil
}

func wordOf(form edn.Value, name string) (string, error) {
	v, ok := form.Get(name)
	if !ok {
		return "", fmt.Errorf("event without %q", name)
	}
	word, ok := v.Word()
	if !ok {
		return "", fmt.Errorf(":%s: expected a keyword, symbol or string, got %.40s", name, v.String())
	}
	return word, nil
}

func (m *mapper) process(v edn.Value) (history.Process, error) {
	if n, ok := v.Integer(); ok {
		if n < 0 || n > math.MaxInt32 || n >= int64(input.FirstNamed) && len(m.named) > 0 {
			return 0, fmt.Errorf(":process: expected an integer from 0 (below %d if other processes have names), a name or "+
				":nemesis, got %d", input.FirstNamed, n)
		}
		m.highNumber = m.highNumber || n >= int64(input.FirstNamed)
		return history.Process(n), nil
	}
	word, ok := v.Word()
	if !ok {
		return 0, fmt.Errorf(":process: expected an integer from 0, a name or :nemesis, got %.40s", v.String())
	}
	word = strings.TrimPrefix(word, ":")
	if word == "nemesis" {
		return history.Nemesis, nil
	}
	if n, err := strconv.ParseUint(word, 10, 31); err == nil && n < uint64(input.FirstNamed) {
		return history.Process(n), nil
	}
	p, ok := m.named[word]
	if !ok && m.highNumber {
		return 0, fmt.Errorf(":process: a history with process numbers from %d cannot have names, got %.40q",
			input.FirstNamed, word)
	}
	if !ok {
		p = input.FirstNamed + history.Process(len(m.named))
		m.named[word] = p
		m.processNames = append(m.processNames, word)
	}
	return p, nil
}

// clock reads index and time. An event without a time gets a time that keeps the order.
func (m *mapper) clock(form edn.Value, e *history.Event) error {
	e.Index = m.next
	if v, ok := form.Get("index"); ok && v.Untagged().Kind != edn.Nil {
		n, ok := v.Integer()
		if !ok {
			return fmt.Errorf(":index: expected a 64-bit integer, got %.40s", v.String())
		}
		e.Index = n
	}
	m.next = max(e.Index, m.next) + 1
	v, ok := form.Get("time")
	if !ok || v.Untagged().Kind == edn.Nil {
		m.untimed++
		m.last = max(m.last, time.Duration(m.next-1))
		e.Time = m.last
		return nil
	}
	unit := max(m.options.Unit, 1)
	if n, ok := v.Integer(); ok && n < math.MaxInt64/int64(unit) && n > math.MinInt64/int64(unit) {
		e.Time = time.Duration(n) * unit
	} else if f, ok := v.Float(); ok && math.Abs(f)*float64(unit) < math.MaxInt64 {
		e.Time = time.Duration(f * float64(unit))
	} else {
		return fmt.Errorf(":time: expected a number of %s since the start, got %.40s",
			strings.TrimPrefix(unit.String(), "1"), v.String())
	}
	m.last = max(m.last, e.Time)
	return nil
}

// body reads arguments, results, owner and key.
func (m *mapper) body(form edn.Value, e *history.Event) error {
	value := &m.value
	err := valueOf(form, value)
	if err != nil {
		return err
	}
	if err := input.CheckValue(value.Permits, value.Limit, value.Lease); err != nil {
		return err
	}
	if value.Token, value.Zero, err = m.token(form); err != nil {
		return err
	}
	value.Zero = value.Zero && e.Type == history.OK && (e.F == history.Acquire || e.F == history.Try)
	value.Owner = m.owner(form, e.Process)
	if *value != (history.Value{}) {
		e.Value = value
	}
	m.key(form, e)
	return nil
}

// key reads the key. A completion has a key of its invocation: in its place many suites return something else.
func (m *mapper) key(form edn.Value, e *history.Event) {
	p := m.state(e.Process)
	isOp := isOperation(e.F) && e.F != history.Touch
	if e.Key = m.keyOf(form); e.Key == "" && m.options.Key == "" {
		m.valued.note(form, e)
	}
	if e.Type != history.Invoke && isOp && p.open && !slices.Contains(p.asked, e.Key) {
		e.Key = p.asked[len(p.asked)-1]
	}
	if e.Key != "" {
		p.key = e.Key
	} else if m.options.Key != "" || isOperation(e.F) {
		e.Key = p.key
	}
	if e.Type != history.Invoke || !isOp {
		return
	}
	if e.Value == nil || !e.Value.Part {
		p.asked = p.asked[:0]
	}
	p.asked = append(p.asked, e.Key)
}

// keyOf is the first key that is not nil or empty.
func (m *mapper) keyOf(form edn.Value) string {
	for i := range m.keys {
		if v, ok := find(form, m.keys[i:i+1]); ok {
			if key := plainText(v); key != "" {
				return key
			}
		}
	}
	return ""
}

// owner returns the owner of an event of p; empty: the process itself.
func (m *mapper) owner(form edn.Value, p history.Process) string {
	if m.options.Owner != "process" {
		if v, ok := find(form, m.owners); ok || m.options.Owner != "" {
			return plainText(v)
		}
	}
	if n := m.state(p).incarnation; n > 0 {
		return incarnation(p, n)
	}
	if n := int(p - input.FirstNamed); n >= 0 && n < len(m.processNames) {
		return m.processNames[n]
	}
	return ""
}

func (m *mapper) token(form edn.Value) (token uint64, zero bool, err error) {
	v, ok := find(form, m.tokens)
	if !ok || v.Untagged().Kind == edn.Nil {
		return 0, false, nil
	}
	n, ok := v.Unsigned()
	if word, isWord := v.Word(); isWord {
		n, err = strconv.ParseUint(word, 10, 64)
		if ok = err == nil; !ok && m.options.Token == "" { // a word is not a fencing token
			return 0, false, nil
		}
	}
	if !ok {
		return 0, false, fmt.Errorf("fencing token: expected an integer from 0 to 2^64-1, got %.40s", v.String())
	}
	return n, n == 0, nil
}

// find returns the field at the first path that exists. A step is a name in a map, or
// an index into a vector, a list or a string of comma-separated items.
func find(form edn.Value, paths []path) (edn.Value, bool) {
	for _, p := range paths {
		v, ok := form, true
		for _, step := range p {
			if v, ok = enter(v.Untagged(), step); !ok {
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

// plainText returns a keyword, symbol or string without its syntax, any other value in EDN; nil is empty.
func plainText(v edn.Value) string {
	v = v.Untagged()
	if v.Kind == edn.Nil {
		return ""
	}
	if word, ok := v.Word(); ok {
		return word
	}
	return v.String()
}
