package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// maxDetail is how much of a foreign value is kept for people, in bytes.
const maxDetail = 500

// understand applies the reading to what an event says.
func (m *mapper) understand(form edn.Value, e *Event) {
	m.emptyAnswer(form, e)
	if e.Type == Fail && (e.F == Release || e.F == Renew) {
		m.failure(form, e)
	}
	if e.Value != nil && e.Value.Zero {
		m.matter[ZeroIsNone]++
		if e.Value.Zero = !m.assumes(ZeroIsNone); *e.Value == (Value{}) {
			e.Value = nil
		}
	}
}

// emptyAnswer: AtlasDB answers a lock that was not granted with "", and an
// unlock of nothing with "false", both as ok.
func (m *mapper) emptyAnswer(form edn.Value, e *Event) {
	v, told := form.Get("value")
	if e.Type != OK || !told || !v.Empty() {
		return
	}
	isNil := v.Bare().Kind == edn.Nil
	switch e.F {
	case Acquire, Try, Renew:
	case Release:
		if word := v.Bare(); word.Kind != edn.Bool && word.Text != "false" {
			return
		}
	default:
		return
	}
	if !isNil { // Jepsen's clients leave the value nil where they have nothing to say
		m.matter[EmptyIsFail]++
	}
	if !m.assumes(EmptyIsFail) {
		return
	}
	e.Type = Fail
	if e.Error == nil {
		e.Error = &Error{Code: "refused", Text: "the answer was empty"}
		if e.F == Release || e.F == Renew {
			e.Error.Code = "not-held"
		}
	}
}

// failure decides what a failed release or renewal tells of the hold.
func (m *mapper) failure(form edn.Value, e *Event) {
	if v, told := form.Get("held"); told { // as WriteEDN writes it
		e.Held = !v.Empty()
		return
	}
	e.Held = true
	if notHeld(e.Error) {
		m.matter[NotHeldEnds]++
		e.Held = !m.assumes(NotHeldEnds)
	}
}

// notHeld says that an error means that there was nothing to release.
func notHeld(e *Error) bool {
	if e == nil {
		return false
	}
	text := strings.ToLower(e.Code + " " + e.Text)
	text = strings.NewReplacer("-", " ", "_", " ").Replace(text)
	for _, sign := range []string{
		"not held", "not found", "not owner", "not lock owner", "not the owner", "not current lock owner", "not locked",
		"no such lock", "expired", "illegalmonitorstate", "lease ended", "lock lost",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// follow keeps account of processes that go on after an unknown outcome, which
// Jepsen's never do: its thread goes on as process + number of threads.
func (m *mapper) follow(e *Event, line int) {
	p := e.Process
	switch {
	case e.Type != Invoke:
		if m.open[p] && opOf(e.F) != OpOther {
			m.open[p], m.unknown[p] = false, e.Type == Info
		}
		return
	case opOf(e.F) == OpOther || e.F == Touch:
		return
	}
	m.open[p] = true
	if !m.unknown[p] {
		return
	}
	m.unknown[p] = false
	m.matter[NumbersReused]++
	if !m.assumes(NumbersReused) {
		m.problem(line, "process %d goes on after an operation of unknown outcome; it was read as the same client", p)
		return
	}
	m.life[p]++
	delete(m.keys, p)
	if e.Value == nil {
		m.value = Value{}
		e.Value = &m.value
	}
	if e.Value.Owner == "" || m.life[p] > 1 && m.reading.Owner == "" {
		e.Value.Owner = fmt.Sprintf("process %d, life %d", p, m.life[p]+1)
	}
}

// causeOf reads :error, which is a keyword, a text, or [:code "text" …].
func causeOf(form edn.Value) *Error {
	v, ok := form.Get("error")
	if v = v.Bare(); !ok || v.Kind == edn.Nil {
		return nil
	}
	if v.Kind != edn.Vector && v.Kind != edn.List || len(v.Items) == 0 {
		return &Error{Code: short(plainText(v))}
	}
	e := Error{Code: short(plainText(v.Items[0]))}
	var rest []string
	for _, item := range v.Items[1:] {
		rest = append(rest, plainText(item))
	}
	e.Text = short(strings.Join(rest, " "))
	return &e
}

func short(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "…"
}

// faultOf is what the nemesis said: ours in full, others' as a text.
func faultOf(form edn.Value) *Value {
	v, ok := form.Get("value")
	if !ok || v.Bare().Kind == edn.Nil {
		return nil
	}
	if left, ok := v.Get("left"); ok {
		return &Value{Left: leftOf(left)}
	}
	f := &FaultValue{Phase: Noted}
	ours, ok := v.Get("fault")
	if phase, told := ours.Get("phase"); !ok || !told {
		f.Detail = short(plainText(v))
		return &Value{Fault: f}
	} else if word, isWord := phase.Word(); isWord {
		f.Phase = Phase(word)
	}
	id, _ := ours.Get("id")
	n, _ := id.Integer()
	f.ID = int(n)
	target, _ := ours.Get("target")
	detail, _ := ours.Get("detail")
	f.Target, f.Detail = plainText(target), plainText(detail)
	return &Value{Fault: f}
}

// leftOf is what our own runs found left at the servers.
func leftOf(v edn.Value) *LeftoverValue {
	n := fields{from: v}
	l := &LeftoverValue{Waiters: int(n.int("waiters")), Permits: int(n.int("permits")), Renewals: int(n.int("renewals"))}
	keys, _ := v.Get("keys")
	for _, key := range keys.Bare().Items {
		l.Keys = append(l.Keys, plainText(key))
	}
	return l
}

// valueOf reads those fields of :value that have our names into value.
func valueOf(form edn.Value, value *Value) error {
	*value = Value{}
	v, ok := form.Get("value")
	if v = v.Bare(); !ok || v.Kind != edn.Map {
		return nil
	}
	n := fields{from: v}
	value.Valid = time.Duration(n.int("valid_ns"))
	value.Count = int(n.int("count"))
	value.Lease = time.Duration(n.int("lease_ns"))
	value.Wait = time.Duration(n.int("wait_ns"))
	value.Work = time.Duration(n.int("work_ns"))
	value.Permits = int(n.int("permits"))
	value.Limit = int(n.int("limit"))
	mode, _ := v.Get("mode")
	value.Mode = plainText(mode)
	if touch, ok := v.Get("touch"); ok && touch.Bare().Kind == edn.Map {
		n.from = touch
		value.Touch = &TouchValue{Read: n.int("read"), Found: n.int("found")}
		seen, _ := touch.Get("max_seen")
		value.Touch.MaxSeen, _ = seen.Unsigned()
		fenced, _ := touch.Get("fenced")
		value.Touch.Fenced = !fenced.Empty()
	}
	return n.err
}

// fields reads whole numbers out of a map and keeps the first error.
type fields struct {
	from edn.Value
	err  error
}

func (f *fields) int(name string) int64 {
	v, ok := f.from.Get(name)
	if !ok || v.Bare().Kind == edn.Nil {
		return 0
	}
	n, ok := v.Integer()
	if !ok && f.err == nil {
		f.err = fmt.Errorf(":%s is %.40s: want a whole number that fits into 64 bits", name, v.String())
	}
	return n
}
