package history

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
)

// ReadNotation reads a history as people write it, one operation or event per
// line, in any order:
//
//	# a comment
//	clients 3
//	client 0 acquire orders 1.000-1.010 ok owner=a token=3 valid=2s
//	client 0 release orders 1.500-1.510 ok
//	client 1 acquire orders 1.200- info
//	client 1 lost    orders 1.900
//	client 0 touch   orders 1.400 ok token=3 read=0 found=0 seen=2 fenced
//	nemesis  kill    1.300 bite id=1 target=n1 detail="gone"
//	probe    orders  9.000 ok
//	leftover orders  9.100 keys=orders:queue waiters=1
//
// Times are seconds since the run began, or have a unit; the number after
// client is the process of the history. An operation without an end, or with
// the word info and no end, has no completion. owner, lease, wait, spend, mode,
// permits and limit are asked; token, valid, count, code and text are answered.
func ReadText(r io.Reader, name string) (*History, error) {
	events, clients, err := ReadTextEvents(r, name)
	if err != nil {
		return nil, err
	}
	h, err := Build(events)
	if err != nil {
		return nil, err
	}
	h.Clients = clients
	return h, nil
}

// notationEnd is a line after which a file in this notation may say what it
// likes: the tests of package checker keep the expected verdicts there.
const notationEnd = "----"

// NotationEvents reads what [ReadNotation] reads, as events in the order of
// their times; those of the same time stay in the order of the lines.
func ReadTextEvents(r io.Reader, name string) (events []Event, clients int, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields, err := words(lines.Text())
		if len(fields) == 1 && fields[0] == notationEnd {
			break
		}
		if err == nil && len(fields) > 0 {
			if fields[0] == "clients" && len(fields) == 2 {
				clients, err = wholeNumber(fields[1])
			} else {
				events, err = notationLine(events, fields)
			}
		}
		if err != nil {
			return nil, 0, &LineError{File: name, Line: n, Err: err}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", name, err)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.Time - b.Time) })
	for i := range events {
		events[i].Index = int64(i)
	}
	return events, clients, nil
}

// words cuts a line at white space outside of double quotes, and the comment off.
func words(line string) ([]string, error) {
	var fields []string
	var field strings.Builder
	quoted, any := false, false
	for _, c := range line {
		switch {
		case c == '"':
			quoted, any = !quoted, true
		case quoted:
			field.WriteRune(c)
		case c == '#':
			if any || field.Len() > 0 {
				fields = append(fields, field.String())
			}
			return fields, nil
		case c == ' ' || c == '\t':
			if any || field.Len() > 0 {
				fields = append(fields, field.String())
			}
			field.Reset()
			any = false
		default:
			field.WriteRune(c)
		}
	}
	if quoted {
		return nil, errors.New("a quotation mark is not closed")
	}
	if any || field.Len() > 0 {
		fields = append(fields, field.String())
	}
	return fields, nil
}

func notationLine(events []Event, fields []string) ([]Event, error) {
	switch fields[0] {
	case "client":
		return notationClient(events, fields[1:])
	case "nemesis":
		return notationNemesis(events, fields[1:])
	case ProbeEvent, LeftoverEvent:
		return notationRest(events, fields)
	}
	return nil, fmt.Errorf("%q: a line begins with client, nemesis, clients, probe or leftover", fields[0])
}

func notationNemesis(events []Event, fields []string) ([]Event, error) {
	if len(fields) < 3 {
		return nil, errors.New("want: nemesis FAULT TIME PHASE [id=N] [target=NAME] [detail=TEXT]")
	}
	at, err := notationTime(fields[1])
	if err != nil {
		return nil, err
	}
	f := FaultValue{Phase: Phase(fields[2])}
	for _, field := range fields[3:] {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "id":
			f.ID, err = wholeNumber(value)
		case "target":
			f.Target = value
		case "detail":
			f.Detail = value
		default:
			err = fmt.Errorf("%q: a fault has id, target and detail", name)
		}
		if err != nil {
			return nil, err
		}
	}
	e := Event{Time: at, Type: Info, Process: Nemesis, F: fields[0], Value: &Value{Fault: &f}}
	return append(events, e), nil
}

func notationClient(events []Event, fields []string) ([]Event, error) {
	if len(fields) < 3 {
		return nil, errors.New("want: client PROCESS OPERATION KEY TIME[-TIME] [ok|fail|info] [NAME=VALUE]…")
	}
	process, err := strconv.ParseInt(fields[0], 10, 32)
	if err != nil || process < 0 {
		return nil, fmt.Errorf("%q: the number of a process is wanted here", fields[0])
	}
	e := Event{Process: Process(process), F: fields[1], Type: Info}
	rest := fields[2:]
	if len(rest) > 1 && (e.F != Crash || !startsWithDigit(rest[0])) {
		e.Key, rest = rest[0], rest[1:]
	}
	from, to, isSpan := strings.Cut(rest[0], "-")
	if e.Time, err = notationTime(from); err != nil {
		return nil, err
	}
	rest = rest[1:]
	if len(rest) > 0 && !strings.Contains(rest[0], "=") && rest[0] != "fenced" {
		if e.Type, err = parseType(rest[0]); err != nil {
			return nil, err
		}
		rest = rest[1:]
	}
	asked, answered, cause, err := notationValues(rest)
	if err != nil {
		return nil, err
	}
	if !isSpan {
		e.Value, e.Error = merge(asked, answered), cause
		return append(events, e), nil
	}
	invoke := e
	invoke.Type, invoke.Value = Invoke, merge(asked, nil)
	events = append(events, invoke)
	if to == "" {
		return events, nil
	}
	e.Value, e.Error = merge(nil, answered), cause
	if e.Time, err = notationTime(to); err == nil && e.Time < invoke.Time {
		err = fmt.Errorf("%s-%s: the operation ends before it begins", from, to)
	}
	return append(events, e), err
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// merge is what is set in asked and answered; nil if nothing is.
func merge(asked, answered *Value) *Value {
	var v Value
	if answered != nil {
		v = *answered
	}
	if asked != nil {
		v.Owner, v.Lease, v.Wait, v.Work = asked.Owner, asked.Lease, asked.Wait, asked.Work
		v.Mode, v.Permits, v.Limit = asked.Mode, asked.Permits, asked.Limit
	}
	if v == (Value{}) {
		return nil
	}
	return &v
}

func notationValues(fields []string) (asked, answered *Value, cause *Error, err error) {
	asked, answered, cause = &Value{}, &Value{}, &Error{}
	touch := &TouchValue{}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		if name == "read" || name == "found" || name == "seen" || name == "fenced" {
			answered.Touch = touch
		}
		if err := notationValue(name, value, asked, answered); err == nil {
			continue
		} else if err != errName {
			return nil, nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		switch name {
		case "code":
			cause.Code = value
		case "text":
			cause.Text = value
		default:
			return nil, nil, nil, fmt.Errorf("%q: %w", name, errName)
		}
	}
	if *cause == (Error{}) {
		cause = nil
	}
	if err := cmp.Or(asked.sensible(), answered.sensible()); err != nil {
		return nil, nil, nil, err
	}
	return asked, answered, cause, nil
}

// errName is an error value of its own, so that it can be told from a bad value.
var errName = errors.New("no such value")

func notationValue(name, value string, asked, answered *Value) (err error) {
	switch name {
	case "owner":
		asked.Owner = value
	case "mode":
		asked.Mode = value
	case "permits":
		asked.Permits, err = wholeNumber(value)
	case "limit":
		asked.Limit, err = wholeNumber(value)
	case "lease":
		asked.Lease, err = notationTime(value)
	case "wait":
		asked.Wait, err = notationTime(value)
	case "work":
		asked.Work, err = notationTime(value)
	case "token":
		answered.Token, err = unsigned(value)
	case "valid":
		answered.Valid, err = notationTime(value)
	case "count":
		answered.Count, err = wholeNumber(value)
	case "read":
		answered.Touch.Read, err = integer(value)
	case "found":
		answered.Touch.Found, err = integer(value)
	case "seen":
		answered.Touch.MaxSeen, err = unsigned(value)
	case "fenced":
		answered.Touch.Fenced = true
	default:
		return errName
	}
	return err
}

// notationTime reads seconds, or a duration with a unit.
func notationTime(s string) (time.Duration, error) {
	if s != "" && (startsWithDigit(s[len(s)-1:]) || s[len(s)-1] == '.') {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q: a time in seconds, or with a unit, is wanted here", strings.TrimSuffix(s, "s"))
	}
	return d, nil
}
