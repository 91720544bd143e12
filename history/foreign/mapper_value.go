package foreign

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/internal/format"
)

// maxDetail bounds the text of errors and faults, in bytes.
const maxDetail = 500

// interpret applies the assumptions to an event.
func (m *mapper) interpret(form edn.Value, e *history.Event) {
	m.emptyValue(form, e)
	if e.Type == history.Fail && (e.F == history.Release || e.F == history.Renew) {
		m.failure(form, e)
	}
	if e.Value != nil && e.Value.Zero {
		m.affected[ZeroIsNone]++
		if e.Value.Zero = !m.assumes(ZeroIsNone); *e.Value == (history.Value{}) {
			e.Value = nil
		}
	}
}

// emptyValue: AtlasDB completes a lock that was not granted with "", and an unlock of nothing with
// "false", both as ok.
func (m *mapper) emptyValue(form edn.Value, e *history.Event) {
	v, ok := form.Get("value")
	if e.Type != history.OK || !ok || !v.Empty() {
		return
	}
	isNil := v.Untagged().Kind == edn.Nil
	switch e.F {
	case history.Acquire, history.Try, history.Renew:
	case history.Release:
		if word := v.Untagged(); word.Kind != edn.Bool && word.Text != "false" {
			return
		}
	default:
		return
	}
	if !isNil { // Jepsen's clients leave the value nil where there is none
		m.affected[EmptyIsFail]++
	}
	if !m.assumes(EmptyIsFail) {
		return
	}
	e.Type = history.Fail
	if e.Error == nil {
		e.Error = &history.Error{Code: "not-granted", Text: "empty value"} // no code of ours: the reason is not known
		if e.F == history.Release || e.F == history.Renew {
			e.Error.Code = "not-held"
		}
	}
}

// failure decides whether the hold continues after a failed release or renewal.
func (m *mapper) failure(form edn.Value, e *history.Event) {
	if v, ok := form.Get("held"); ok { // as WriteEDN writes it
		e.Held = !v.Empty()
		return
	}
	e.Held = true
	if notHeld(e.Error) {
		m.affected[NotHeldEnds]++
		if m.assumes(NotHeldEnds) {
			e.Held = false
			m.valueOf(e).Lapsed = true
		}
	}
}

// valueOf is the value of e, which m owns; an empty one if e has none.
func (m *mapper) valueOf(e *history.Event) *history.Value {
	if e.Value == nil {
		m.value = history.Value{}
		e.Value = &m.value
	}
	return e.Value
}

// notHeld reports whether e means that there was no hold to release.
func notHeld(e *history.Error) bool {
	if e == nil {
		return false
	}
	text := strings.ToLower(e.Code + " " + e.Text)
	text = strings.NewReplacer("-", " ", "_", " ").Replace(text)
	for _, phrase := range []string{
		"not held", "not found", "not owner", "not lock owner", "not the owner", "not current lock owner", "not locked",
		"no such lock", "expired", "illegalmonitorstate", "lease ended", "lock lost",
	} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// trackProcess finds processes that are reused after an unknown outcome. Jepsen never does that: its thread
// continues as process + number of threads.
func (m *mapper) trackProcess(e *history.Event, line int) {
	p := m.state(e.Process)
	switch {
	case e.Type != history.Invoke:
		if p.open && isOperation(e.F) {
			p.open, p.unknown = false, e.Type == history.Info
		}
		return
	case !isOperation(e.F) || e.F == history.Touch:
		return
	}
	p.open = true
	if !p.unknown {
		return
	}
	p.unknown = false
	m.affected[NumbersReused]++
	if !m.assumes(NumbersReused) {
		m.problem(line, "process %d continues after an operation of unknown outcome; read as the same client", e.Process)
		return
	}
	p.incarnation++
	p.key = ""
	if v := m.valueOf(e); v.Owner == "" || p.incarnation > 1 && m.options.Owner == "" {
		v.Owner = incarnation(e.Process, p.incarnation)
	}
}

// incarnation is the owner after n reuses of a process number.
func incarnation(p history.Process, n int) string {
	return fmt.Sprintf("process %d, incarnation %d", p, n+1)
}

// errorOf reads :error, which is a keyword, a string, or [:code "text" …].
func errorOf(form edn.Value) *history.Error {
	v, ok := form.Get("error")
	if v = v.Untagged(); !ok || v.Kind == edn.Nil {
		return nil
	}
	if v.Kind != edn.Vector && v.Kind != edn.List || len(v.Items) == 0 {
		return &history.Error{Code: truncate(plainText(v))}
	}
	e := history.Error{Code: truncate(plainText(v.Items[0]))}
	e.Text = truncate(strings.Join(format.Texts(v.Items[1:], plainText), " "))
	return &e
}

func truncate(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "…"
}

// faultOf reads the value of the nemesis: ours field by field, any other one as a text.
func faultOf(form edn.Value) *history.Value {
	v, ok := form.Get("value")
	if !ok || v.Untagged().Kind == edn.Nil {
		return nil
	}
	if left, ok := v.Get("left"); ok {
		return &history.Value{Left: leftoverOf(left)}
	}
	f := &history.FaultValue{Phase: history.Noted}
	fault, _ := v.Get("fault")
	phase, ok := fault.Get("phase")
	if !ok {
		f.Detail = truncate(plainText(v))
		return &history.Value{Fault: f}
	}
	if word, ok := phase.Word(); ok {
		f.Phase = history.Phase(word)
	}
	id, _ := fault.Get("id")
	n, _ := id.Integer()
	f.ID = int(n)
	target, _ := fault.Get("target")
	detail, _ := fault.Get("detail")
	f.Target, f.Detail = plainText(target), plainText(detail)
	for name, to := range map[string]*string{
		"affects": &f.Affects, "class": &f.Class, "object": &f.Object, "verb": &f.Verb,
	} {
		word, _ := fault.Get(name)
		*to = plainText(word)
	}
	lasted := fields{from: fault}
	f.Lasted = time.Duration(lasted.int("lasted_ns"))
	return &history.Value{Fault: f}
}

func leftoverOf(v edn.Value) *history.LeftoverValue {
	n := fields{from: v}
	l := &history.LeftoverValue{
		Waiters: int(n.int("waiters")), Permits: int(n.int("permits")), Renewals: int(n.int("renewals")),
	}
	keys, _ := v.Get("keys")
	for _, key := range keys.Untagged().Items {
		l.Keys = append(l.Keys, plainText(key))
	}
	return l
}

// valueOf reads the fields of :value that have our names into value.
func valueOf(form edn.Value, value *history.Value) error {
	*value = history.Value{}
	v, ok := form.Get("value")
	if v = v.Untagged(); !ok || v.Kind != edn.Map {
		return nil
	}
	n := fields{from: v}
	value.Valid = time.Duration(n.int("valid_ns"))
	value.Count = int(n.int("count"))
	undone, ok := v.Get("undone")
	value.Undone = ok && !undone.Empty()
	value.Lease = time.Duration(n.int("lease_ns"))
	value.Age = time.Duration(n.int("age_ns"))
	value.Wait = time.Duration(n.int("wait_ns"))
	value.Close = time.Duration(n.int("close_ns"))
	value.Work = time.Duration(n.int("work_ns"))
	value.Permits = int(n.int("permits"))
	value.Limit = int(n.int("limit"))
	mode, _ := v.Get("mode")
	value.Mode = plainText(mode)
	lapsed, _ := v.Get("lapsed")
	value.Lapsed = !lapsed.Empty()
	part, _ := v.Get("part")
	value.Part = !part.Empty()
	if touch, ok := v.Get("touch"); ok && touch.Untagged().Kind == edn.Map {
		n.from = touch
		value.Touch = &history.TouchValue{Read: n.int("read"), Found: n.int("found")}
		seen, _ := touch.Get("max_seen")
		value.Touch.MaxSeen, _ = seen.Unsigned()
		fenced, _ := touch.Get("fenced")
		value.Touch.Fenced = !fenced.Empty()
	}
	return n.err
}

// fields reads integers from a map and keeps the first error.
type fields struct {
	from edn.Value
	err  error
}

func (f *fields) int(name string) int64 {
	v, ok := f.from.Get(name)
	if !ok || v.Untagged().Kind == edn.Nil {
		return 0
	}
	n, ok := v.Integer()
	if !ok && f.err == nil {
		f.err = fmt.Errorf(":%s: expected a 64-bit integer, got %.40s", name, v.String())
	}
	return n
}
