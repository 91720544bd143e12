package foreign

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/input"
)

// ReadText reads a history written by hand, one operation or event per line, in any order:
//
//	# a comment
//	clients 3
//	client 0 acquire orders 1.000-1.010 ok owner=a token=3 valid=2s
//	client 0 release orders 1.500-1.510 ok
//	client 1 acquire orders 1.200- info
//	client 1 lost    orders 1.900 age=20ms
//	client 0 touch   orders 1.400 ok token=3 read=0 found=0 seen=2 fenced
//	nemesis  kill    1.300 effect id=1 target=n1 detail="SIGKILL"
//	probe    orders  9.000 ok
//	leftover orders  9.100 keys=orders:queue waiters=1
//	witness  n1      1.015 orders owner=a count=1 ttl=1.995s
//	received n1      1.015 client=0 dials=2 channels=1 commands=9 key=orders requests=7
//
// Times are seconds since the start of the run, or have a unit. The number after client is the process. An operation
// without an end has no completion. owner, lease, wait, work, mode, permits, limit and part belong to the invocation;
// token, valid, count, age, undone, lapsed, code and text to the completion, except for the count of an arm.
func ReadText(r io.Reader, name string) (*history.History, error) {
	t, err := readText(r, name)
	if err != nil {
		return nil, err
	}
	h, err := history.Build(t.events)
	if err != nil {
		return nil, err
	}
	h.Clients, h.Samples = t.clients, t.samples
	return h, nil
}

// textEnd is a line that ends the history: the tests of package checker keep the expected verdicts after it.
const textEnd = "----"

// ReadTextEvents is [ReadText] without pairing: it returns the events in the order of their times, or else of their
// lines, and the number of clients (0: unknown).
func ReadTextEvents(r io.Reader, name string) (events []history.Event, clients int, err error) {
	t, err := readText(r, name)
	return t.events, t.clients, err
}

// textHistory is the content of a history written by hand.
type textHistory struct {
	events  []history.Event
	samples []history.Sample
	clients int
}

func readText(r io.Reader, name string) (t textHistory, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields, err := splitFields(lines.Text())
		if len(fields) == 1 && fields[0] == textEnd {
			break
		}
		if err == nil && len(fields) > 0 {
			switch {
			case fields[0] == "clients" && len(fields) == 2:
				t.clients, err = nonNegative(fields[1])
			case fields[0] == "witness":
				t.samples, err = textSample(t.samples, fields[1:])
			case fields[0] == "received":
				t.samples, err = textReceived(t.samples, fields[1:])
			default:
				t.events, err = textLine(t.events, fields)
			}
		}
		if err != nil {
			return textHistory{}, &history.LineError{File: name, Line: n, Err: err}
		}
	}
	if err := lines.Err(); err != nil {
		return textHistory{}, fmt.Errorf("reading %s: %w", name, err)
	}
	slices.SortStableFunc(t.events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range t.events {
		t.events[i].Index = int64(i)
	}
	slices.SortStableFunc(t.samples, func(a, b history.Sample) int { return cmp.Compare(a.Time, b.Time) })
	return t, nil
}

// splitFields splits a line at white space outside of double quotes and drops its comment.
func splitFields(line string) ([]string, error) {
	if !utf8.ValidString(line) {
		return nil, errors.New("line is not UTF-8")
	}
	var fields []string
	var field strings.Builder
	quoted, started := false, false
	end := func() {
		if started {
			fields = append(fields, field.String())
		}
		field.Reset()
		started = false
	}
	for _, c := range line {
		switch {
		case c == '"':
			quoted, started = !quoted, true
		case !quoted && c == '#':
			end()
			return fields, nil
		case !quoted && (c == ' ' || c == '\t'):
			end()
		default:
			field.WriteRune(c)
			started = true
		}
	}
	if quoted {
		return nil, errors.New("missing closing quotation mark")
	}
	end()
	return fields, nil
}

func textLine(events []history.Event, fields []string) ([]history.Event, error) {
	switch fields[0] {
	case "client":
		return textClient(events, fields[1:])
	case "nemesis":
		return textNemesis(events, fields[1:])
	case history.ProbeEvent, history.LeftoverEvent:
		return textFinal(events, fields)
	}
	return nil, fmt.Errorf("a line of the text format begins with client, nemesis, clients, probe, leftover, witness or "+
		"received, not %q", fields[0])
}

func textNemesis(events []history.Event, fields []string) ([]history.Event, error) {
	if len(fields) < 3 {
		return nil, errors.New("expected nemesis FAULT TIME PHASE [id=N] [target=NAME] [detail=TEXT] " +
			"[affects=A,B] [class=CLASS] [object=OBJECT] [verb=TEXT] [lasted=D]")
	}
	at, err := textTime(fields[1])
	if err != nil {
		return nil, err
	}
	f := history.FaultValue{Phase: history.Phase(fields[2])}
	parts := textFields{"id": &f.ID, "target": &f.Target, "detail": &f.Detail, "lasted": &f.Lasted,
		"class": &f.Class, "object": &f.Object, "verb": &f.Verb,
		"affects": func(value string) { f.Affects = strings.ReplaceAll(value, ",", " ") }}
	err = parts.setAll(fields[3:], "a fault; it has id, target, detail, affects, class, object, verb and lasted")
	if err != nil {
		return nil, err
	}
	return append(events, history.Event{Time: at, Type: history.Info, Process: history.Nemesis, F: fields[0],
		Value: &history.Value{Fault: &f}}), nil
}

func textClient(events []history.Event, fields []string) ([]history.Event, error) {
	if len(fields) < 3 {
		return nil, errors.New("expected client PROCESS OPERATION KEY TIME[-TIME] [ok|fail|info] [NAME=VALUE]…")
	}
	process, err := strconv.ParseInt(fields[0], 10, 32)
	if err != nil || process < 0 {
		return nil, fmt.Errorf("expected a process number, got %q", fields[0])
	}
	e := history.Event{Process: history.Process(process), F: fields[1], Type: history.Info}
	rest := fields[2:]
	if len(rest) > 1 && (e.F != history.Crash || !startsWithDigit(rest[0])) {
		e.Key, rest = rest[0], rest[1:]
	}
	from, to, isSpan := strings.Cut(rest[0], "-")
	if e.Time, err = textTime(from); err != nil {
		return nil, err
	}
	rest = rest[1:]
	if len(rest) > 0 && !strings.Contains(rest[0], "=") && rest[0] != "fenced" && rest[0] != "part" {
		if err = e.Type.UnmarshalText([]byte(rest[0])); err != nil {
			return nil, err
		}
		rest = rest[1:]
	}
	args, results, cause, err := textValues(rest)
	if err != nil {
		return nil, err
	}
	if e.F == history.Arm {
		args.Count, results.Count = results.Count, 0
	}
	if e.F == history.Inspect {
		args.Owner, results.Owner = "", args.Owner
	}
	if !isSpan {
		e.Value, e.Error = merge(args, results), cause
		return append(events, e), nil
	}
	invoke := e
	invoke.Type, invoke.Value = history.Invoke, merge(args, nil)
	events = append(events, invoke)
	if to == "" {
		return events, nil
	}
	e.Value, e.Error = merge(nil, results), cause
	if e.Time, err = textTime(to); err == nil && e.Time < invoke.Time {
		err = fmt.Errorf("%s-%s: operation ends before it starts", from, to)
	}
	return append(events, e), err
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// merge returns the fields that are set in args and results; nil if there are none.
func merge(args, results *history.Value) *history.Value {
	var v history.Value
	if results != nil {
		v = *results
	}
	if args != nil {
		v.Owner, v.Lease, v.Wait, v.Close, v.Work = args.Owner, args.Lease, args.Wait, args.Close, args.Work
		v.Mode, v.Permits, v.Limit, v.Part = args.Mode, args.Permits, args.Limit, args.Part
	}
	if args != nil && args.Count > 0 { // of an arm
		v.Count = args.Count
	}
	if v == (history.Value{}) {
		return nil
	}
	return &v
}

func textValues(fields []string) (args, results *history.Value, cause *history.Error, err error) {
	args, results, cause = &history.Value{}, &history.Value{}, &history.Error{}
	touch := &history.TouchValue{}
	parts := textFields{
		"owner": &args.Owner, "mode": &args.Mode, "permits": &args.Permits, "limit": &args.Limit, "part": &args.Part,
		"lease": &args.Lease, "wait": &args.Wait, "close": &args.Close, "work": &args.Work,
		"granted": &results.Permits, "token": &results.Token, "valid": &results.Valid, "age": &results.Age,
		"undone": &results.Undone, "lapsed": &results.Lapsed,
		"count": func(value string) (err error) { results.Count, err = strconv.Atoi(value); return err },
		"read":  &touch.Read, "found": &touch.Found, "seen": &touch.MaxSeen, "fenced": &touch.Fenced,
		"code": &cause.Code, "text": &cause.Text,
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		if name == "read" || name == "found" || name == "seen" || name == "fenced" {
			results.Touch = touch
		}
		switch known, err := parts.set(name, value); {
		case !known:
			return nil, nil, nil, fmt.Errorf("unknown field %q", name)
		case err != nil:
			return nil, nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if *cause == (history.Error{}) {
		cause = nil
	}
	if err := input.CheckValue(args.Permits, args.Limit, args.Lease); err != nil {
		return nil, nil, nil, err
	}
	return args, results, cause, nil
}

// textTime parses seconds, or a duration with a unit.
func textTime(s string) (time.Duration, error) {
	if s != "" && (startsWithDigit(s[len(s)-1:]) || s[len(s)-1] == '.') {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("expected a time in seconds, or with a unit, got %q", strings.TrimSuffix(s, "s"))
	}
	return d, nil
}

func textFinal(events []history.Event, fields []string) ([]history.Event, error) {
	if len(fields) < 3 {
		return nil, errors.New("expected probe KEY TIME ok|fail|info, or leftover KEY TIME [NAME=VALUE]…")
	}
	at, err := textTime(fields[2])
	if err != nil {
		return nil, err
	}
	e := history.Event{Time: at, Type: history.Info, Process: history.Nemesis, F: fields[0], Key: fields[1]}
	if e.F == history.ProbeEvent {
		if len(fields) == 4 {
			err = e.Type.UnmarshalText([]byte(fields[3]))
		}
		return append(events, e), err
	}
	l := &history.LeftoverValue{}
	parts := textFields{"waiters": &l.Waiters, "permits": &l.Permits, "renewals": &l.Renewals,
		"keys": func(value string) { l.Keys = strings.Split(value, ",") }}
	if err := parts.setAll(fields[3:], "leftover; it has keys, waiters, permits and renewals"); err != nil {
		return nil, err
	}
	e.Value = &history.Value{Left: l}
	return append(events, e), nil
}
