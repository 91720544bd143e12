package history

import (
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// parser parses lines of JSON into memory that it reuses for the next line. Its fast path knows only what
// [Recorder] writes; encoding/json parses every other line, and every line with an error.
type parser struct {
	b         []byte
	i         int
	event     Event
	value     Value
	touch     TouchValue
	fault     FaultValue
	error     Error
	index     bool              // the line has an index
	seen      uint64            // bit set of the fields of the line
	words     map[string]string // interned strings
	duplicate string            // a field that the line has twice
}

// maxWords bounds the interned strings: owners may all be different.
const maxWords = 4096

func (p *parser) parse(line []byte) error {
	p.event, p.value, p.touch, p.fault = Event{}, Value{}, TouchValue{}, FaultValue{}
	p.index, p.seen, p.duplicate = false, 0, ""
	if !p.parseFast(line) {
		if err := p.parseJSON(line); err != nil {
			return err
		}
	}
	if p.event.Type == 0 {
		return errors.New(`event without "type"`)
	}
	if p.event.F == "" {
		return errors.New(`event without "f"`)
	}
	return p.event.Value.validate()
}

// parseFast reports whether the line has the form that [Recorder] writes, and nothing follows it.
func (p *parser) parseFast(line []byte) bool {
	p.b, p.i = line, 0
	ok := p.object(p.eventField)
	p.skip()
	return ok && p.i == len(p.b)
}

// once records a field, which an object may have once.
func (p *parser) once(bit int, name []byte) {
	if p.seen&(1<<bit) != 0 && p.duplicate == "" {
		p.duplicate = string(name)
	}
	p.seen |= 1 << bit
}

func (p *parser) parseJSON(line []byte) error {
	var wire struct {
		Event
		Index *int64 `json:"index"`
	}
	if err := json.Unmarshal(line, &wire); err != nil {
		return jsonError(err)
	}
	if !utf8.Valid(line) { // encoding/json replaces invalid bytes, so that different names become equal
		return errors.New("line is not UTF-8")
	}
	p.event, p.duplicate = wire.Event, duplicateKey(line)
	p.index = wire.Index != nil
	if p.index {
		p.event.Index = *wire.Index
	}
	return nil
}

func (p *parser) eventField(name []byte) bool {
	switch string(name) {
	case "index":
		p.once(0, name)
		p.index = true
		return p.int64(&p.event.Index)
	case "time":
		p.once(1, name)
		return p.duration(&p.event.Time)
	case "type":
		p.once(2, name)
		return p.typeWord()
	case "process":
		p.once(3, name)
		return p.process()
	case "f":
		p.once(4, name)
		return p.word(&p.event.F)
	case "key":
		p.once(5, name)
		return p.word(&p.event.Key)
	case "value":
		p.once(6, name)
		p.event.Value = &p.value
		return p.object(p.valueField)
	case "held":
		p.once(7, name)
		return p.bool(&p.event.Held)
	case "error":
		p.once(8, name)
		p.event.Error = &p.error
		return p.byte('[') && p.word(&p.error.Code) && p.byte(',') && p.word(&p.error.Text) && p.byte(']')
	}
	return false
}

func (p *parser) valueField(name []byte) bool {
	v := &p.value
	switch string(name) {
	case "owner":
		p.once(9, name)
		return p.string(&v.Owner)
	case "token":
		p.once(10, name)
		return p.uint64(&v.Token)
	case "zero":
		p.once(11, name)
		return p.bool(&v.Zero)
	case "valid_ns":
		p.once(12, name)
		return p.duration(&v.Valid)
	case "count":
		p.once(13, name)
		return p.int(&v.Count)
	case "lease_ns":
		p.once(14, name)
		return p.duration(&v.Lease)
	case "wait_ns":
		p.once(15, name)
		return p.duration(&v.Wait)
	case "work_ns":
		p.once(16, name)
		return p.duration(&v.Work)
	case "mode":
		p.once(17, name)
		return p.word(&v.Mode)
	case "permits":
		p.once(18, name)
		return p.int(&v.Permits)
	case "limit":
		p.once(19, name)
		return p.int(&v.Limit)
	case "touch":
		p.once(20, name)
		v.Touch = &p.touch
		return p.object(p.touchField)
	case "fault":
		p.once(21, name)
		v.Fault = &p.fault
		return p.object(p.faultField)
	}
	return false
}

func (p *parser) touchField(name []byte) bool {
	switch string(name) {
	case "read":
		p.once(22, name)
		return p.int64(&p.touch.Read)
	case "found":
		p.once(23, name)
		return p.int64(&p.touch.Found)
	case "max_seen":
		p.once(24, name)
		return p.uint64(&p.touch.MaxSeen)
	case "fenced":
		p.once(25, name)
		return p.bool(&p.touch.Fenced)
	}
	return false
}

func (p *parser) faultField(name []byte) bool {
	switch string(name) {
	case "id":
		p.once(26, name)
		return p.int(&p.fault.ID)
	case "phase":
		p.once(27, name)
		return p.word((*string)(&p.fault.Phase))
	case "target":
		p.once(28, name)
		return p.word(&p.fault.Target)
	case "detail":
		p.once(29, name)
		return p.string(&p.fault.Detail)
	}
	return false
}

func (p *parser) typeWord() bool {
	b, ok := p.raw()
	if !ok {
		return false
	}
	switch string(b) {
	case "invoke":
		p.event.Type = Invoke
	case "ok":
		p.event.Type = OK
	case "fail":
		p.event.Type = Fail
	case "info":
		p.event.Type = Info
	default:
		return false
	}
	return true
}

func (p *parser) process() bool {
	p.skip()
	if p.i < len(p.b) && p.b[p.i] == '"' {
		b, ok := p.raw()
		p.event.Process = Nemesis
		return ok && string(b) == "nemesis"
	}
	var n int64
	ok := p.int64(&n)
	p.event.Process = Process(n)
	return ok && n >= 0 && n < 1<<31
}

func (p *parser) duration(to *time.Duration) bool { return p.int64((*int64)(to)) }
