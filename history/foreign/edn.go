package foreign

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// WriteEDN writes events as Jepsen's history.edn, one map per line, for Jepsen, Knossos and elle-cli.
func WriteEDN(w io.Writer, events []history.Event) error {
	b := bufio.NewWriterSize(w, window)
	var line []byte
	for i := range events {
		line = append(AppendEDN(&events[i], line[:0]), '\n')
		if _, err := b.Write(line); err != nil {
			return fmt.Errorf("writing event %d: %w", events[i].Index, err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing a history: %w", err)
	}
	return nil
}

// AppendEDN appends e to b as one EDN map, without a newline. Jepsen's fields come first; key and held are
// additions, which its tools ignore.
func AppendEDN(e *history.Event, b []byte) []byte {
	b = strconv.AppendInt(append(b, "{:index "...), e.Index, 10)
	b = strconv.AppendInt(append(b, ", :time "...), int64(e.Time), 10)
	b = append(append(b, ", :type :"...), e.Type.String()...)
	b = append(b, ", :process "...)
	if e.Process == history.Nemesis {
		b = append(b, ":nemesis"...)
	} else {
		b = strconv.AppendInt(b, int64(e.Process), 10)
	}
	b = edn.AppendKeyword(append(b, ", :f "...), e.F)
	b = append(b, ", :value "...)
	if e.Value == nil {
		b = append(b, "nil"...)
	} else {
		b = appendValue(b, e.Value)
	}
	if e.Key != "" {
		b = edn.AppendString(append(b, ", :key "...), e.Key)
	}
	if e.Error != nil {
		b = edn.AppendKeyword(append(b, ", :error ["...), e.Error.Code)
		b = append(edn.AppendString(append(b, ' '), e.Error.Text), ']')
	}
	if e.Type == history.Fail && (e.F == history.Release || e.F == history.Renew) {
		b = strconv.AppendBool(append(b, ", :held "...), e.Held)
	}
	return append(b, '}')
}

// ednMap appends the fields of one map.
type ednMap struct {
	b   []byte
	any bool
}

func (m *ednMap) name(name string) {
	if m.any {
		m.b = append(m.b, ", "...)
	}
	m.any = true
	m.b = append(append(append(m.b, ':'), name...), ' ')
}

func (m *ednMap) text(name, s string) {
	if s != "" {
		m.name(name)
		m.b = edn.AppendString(m.b, s)
	}
}

func (m *ednMap) number(name string, n int64) {
	if n != 0 {
		m.name(name)
		m.b = strconv.AppendInt(m.b, n, 10)
	}
}

func appendValue(b []byte, v *history.Value) []byte {
	m := ednMap{b: append(b, '{')}
	m.text("owner", v.Owner)
	if v.Token != 0 || v.Zero {
		m.name("token")
		m.b = strconv.AppendUint(m.b, v.Token, 10)
	}
	for _, d := range []struct {
		name string
		time.Duration
	}{{"valid_ns", v.Valid}, {"lease_ns", v.Lease}, {"age_ns", v.Age},
		{"wait_ns", v.Wait}, {"close_ns", v.Close}, {"work_ns", v.Work}} {
		m.number(d.name, int64(d.Duration))
	}
	m.number("count", int64(v.Count))
	if v.Undone {
		m.name("undone")
		m.b = append(m.b, "true"...)
	}
	m.number("permits", int64(v.Permits))
	m.number("limit", int64(v.Limit))
	m.text("mode", v.Mode)
	if v.Lapsed {
		m.name("lapsed")
		m.b = append(m.b, "true"...)
	}
	if v.Part {
		m.name("part")
		m.b = append(m.b, "true"...)
	}
	if v.Touch != nil {
		m.name("touch")
		m.b = appendTouchValue(m.b, v.Touch)
	}
	if v.Fault != nil {
		m.name("fault")
		m.b = appendFaultValue(m.b, v.Fault)
	}
	if v.Left != nil {
		m.name("left")
		m.b = appendLeftoverValue(m.b, v.Left)
	}
	return append(m.b, '}')
}

func appendLeftoverValue(b []byte, l *history.LeftoverValue) []byte {
	m := ednMap{b: append(b, '{')}
	if len(l.Keys) > 0 {
		m.name("keys")
		for i, key := range l.Keys {
			m.b = edn.AppendString(append(m.b, "[ "[min(i, 1)]), key)
		}
		m.b = append(m.b, ']')
	}
	m.number("waiters", int64(l.Waiters))
	m.number("permits", int64(l.Permits))
	m.number("renewals", int64(l.Renewals))
	return append(m.b, '}')
}

func appendTouchValue(b []byte, t *history.TouchValue) []byte {
	b = strconv.AppendInt(append(b, "{:read "...), t.Read, 10)
	b = strconv.AppendInt(append(b, ", :found "...), t.Found, 10)
	b = strconv.AppendUint(append(b, ", :max_seen "...), t.MaxSeen, 10)
	b = strconv.AppendBool(append(b, ", :fenced "...), t.Fenced)
	return append(b, '}')
}

func appendFaultValue(b []byte, f *history.FaultValue) []byte {
	b = strconv.AppendInt(append(b, "{:id "...), int64(f.ID), 10)
	b = edn.AppendKeyword(append(b, ", :phase "...), string(f.Phase))
	m := ednMap{b: b, any: true}
	m.text("target", f.Target)
	m.text("detail", f.Detail)
	m.number("lasted_ns", int64(f.Lasted))
	m.text("affects", f.Affects)
	m.text("class", f.Class)
	m.text("object", f.Object)
	m.text("verb", f.Verb)
	return append(m.b, '}')
}
