package history

import (
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// parser reads one line of JSON into scratch space that it uses again for the
// next line. Its quick path knows only what [Recorder] writes; at anything
// else it gives up, and encoding/json reads the line (and words the error).
type parser struct {
	b     []byte
	i     int
	event Event
	value Value
	touch TouchValue
	fault FaultValue
	error Error
	index bool              // the line has an index
	words map[string]string // names that come again and again, kept once
}

// maxWords bounds the names kept: owners may all be different.
const maxWords = 4096

func (p *parser) parse(line []byte) error {
	p.b, p.i = line, 0
	p.event, p.value, p.touch, p.fault = Event{}, Value{}, TouchValue{}, FaultValue{}
	p.index = false
	quick := p.object(p.eventField)
	if p.skip(); !quick || p.i != len(p.b) {
		if err := p.slow(line); err != nil {
			return err
		}
	}
	if p.event.Type == 0 {
		return errors.New(`event without "type"`)
	}
	if p.event.F == "" {
		return errors.New(`event without "f"`)
	}
	return nil
}

// slow reads the line with encoding/json.
func (p *parser) slow(line []byte) error {
	var wire struct {
		Event
		Index *int64 `json:"index"`
	}
	if err := json.Unmarshal(line, &wire); err != nil {
		return err
	}
	if !utf8.Valid(line) { // encoding/json would read different names as the same one
		return errors.New("the line is not UTF-8")
	}
	p.event = wire.Event
	p.index = wire.Index != nil
	if p.index {
		p.event.Index = *wire.Index
	}
	return nil
}

func (p *parser) eventField(name []byte) bool {
	switch string(name) {
	case "index":
		p.index = true
		return p.int64(&p.event.Index)
	case "time":
		return p.duration(&p.event.Time)
	case "type":
		return p.typeWord()
	case "process":
		return p.process()
	case "f":
		return p.word(&p.event.F)
	case "key":
		return p.word(&p.event.Key)
	case "value":
		p.event.Value = &p.value
		return p.object(p.valueField)
	case "held":
		return p.bool(&p.event.Held)
	case "error":
		p.event.Error = &p.error
		return p.byte('[') && p.word(&p.error.Code) && p.byte(',') && p.word(&p.error.Text) && p.byte(']')
	}
	return false
}

func (p *parser) valueField(name []byte) bool {
	v := &p.value
	switch string(name) {
	case "owner":
		return p.string(&v.Owner)
	case "token":
		return p.uint64(&v.Token)
	case "zero":
		return p.bool(&v.Zero)
	case "valid_ns":
		return p.duration(&v.Valid)
	case "count":
		return p.int(&v.Count)
	case "lease_ns":
		return p.duration(&v.Lease)
	case "wait_ns":
		return p.duration(&v.Wait)
	case "spend_ns":
		return p.duration(&v.Spend)
	case "mode":
		return p.word(&v.Mode)
	case "permits":
		return p.int(&v.Permits)
	case "limit":
		return p.int(&v.Limit)
	case "touch":
		v.Touch = &p.touch
		return p.object(p.touchField)
	case "fault":
		v.Fault = &p.fault
		return p.object(p.faultField)
	}
	return false
}

func (p *parser) touchField(name []byte) bool {
	switch string(name) {
	case "read":
		return p.int64(&p.touch.Read)
	case "found":
		return p.int64(&p.touch.Found)
	case "max_seen":
		return p.uint64(&p.touch.MaxSeen)
	case "fenced":
		return p.bool(&p.touch.Fenced)
	}
	return false
}

func (p *parser) faultField(name []byte) bool {
	switch string(name) {
	case "id":
		return p.int(&p.fault.ID)
	case "phase":
		return p.word((*string)(&p.fault.Phase))
	case "target":
		return p.word(&p.fault.Target)
	case "detail":
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
