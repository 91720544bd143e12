package history

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/history/internal/input"
)

// parser parses lines of JSON into memory that it reuses for the next line. Its fast path knows only the format of
// [Recorder]; encoding/json parses every other line, and every line with an error.
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
	unescaped []byte            // of a string with escapes
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
	if v := p.event.Value; v != nil {
		return input.CheckValue(v.Permits, v.Limit, v.Lease)
	}
	return nil
}

// parseFast reports whether the line has the form that [Recorder] writes, and nothing follows it.
func (p *parser) parseFast(line []byte) bool {
	p.b, p.i = line, 0
	ok := p.object(p.eventField)
	p.skip()
	return ok && p.i == len(p.b)
}

func (p *parser) parseJSON(line []byte) error {
	var wire struct {
		Event
		Index *int64 `json:"index"`
	}
	if err := json.Unmarshal(line, &wire); err != nil {
		return jsonError(err)
	}
	duplicate, err := edn.CheckJSON(line)
	if err != nil {
		return err
	}
	p.event, p.duplicate = wire.Event, duplicate
	p.index = wire.Index != nil
	if p.index {
		p.event.Index = *wire.Index
	}
	return nil
}

func (p *parser) eventField(name []byte) (bit int, ok bool) {
	switch string(name) {
	case "index":
		p.index = true
		return 0, p.int64(&p.event.Index)
	case "time":
		return 1, p.duration(&p.event.Time)
	case "type":
		return 2, p.typeWord()
	case "process":
		return 3, p.process()
	case "f":
		return 4, p.word(&p.event.F)
	case "key":
		return 5, p.word(&p.event.Key)
	case "value":
		p.event.Value = &p.value
		return 6, p.object(p.valueField)
	case "held":
		return 7, p.bool(&p.event.Held)
	case "error":
		p.event.Error = &p.error
		return 8, p.byte('[') && p.word(&p.error.Code) && p.byte(',') && p.word(&p.error.Text) && p.byte(']')
	}
	return 0, false
}

func (p *parser) valueField(name []byte) (bit int, ok bool) {
	v := &p.value
	switch string(name) {
	case "owner":
		return 9, p.string(&v.Owner)
	case "token":
		return 10, p.uint64(&v.Token)
	case "zero":
		return 11, p.bool(&v.Zero)
	case "valid_ns":
		return 12, p.duration(&v.Valid)
	case "count":
		return 13, p.int(&v.Count)
	case "undone":
		return 30, p.bool(&v.Undone)
	case "lease_ns":
		return 14, p.duration(&v.Lease)
	case "age_ns":
		return 31, p.duration(&v.Age)
	case "wait_ns":
		return 15, p.duration(&v.Wait)
	case "close_ns":
		return 34, p.duration(&v.Close)
	case "work_ns":
		return 16, p.duration(&v.Work)
	case "mode":
		return 17, p.word(&v.Mode)
	case "permits":
		return 18, p.int(&v.Permits)
	case "limit":
		return 19, p.int(&v.Limit)
	case "lapsed":
		return 39, p.bool(&v.Lapsed)
	case "part":
		return 33, p.bool(&v.Part)
	case "touch":
		v.Touch = &p.touch
		return 20, p.object(p.touchField)
	case "fault":
		v.Fault = &p.fault
		return 21, p.object(p.faultField)
	}
	return 0, false
}

func (p *parser) touchField(name []byte) (bit int, ok bool) {
	switch string(name) {
	case "read":
		return 22, p.int64(&p.touch.Read)
	case "found":
		return 23, p.int64(&p.touch.Found)
	case "max_seen":
		return 24, p.uint64(&p.touch.MaxSeen)
	case "fenced":
		return 25, p.bool(&p.touch.Fenced)
	}
	return 0, false
}

func (p *parser) faultField(name []byte) (bit int, ok bool) {
	switch string(name) {
	case "id":
		return 26, p.int(&p.fault.ID)
	case "phase":
		return 27, p.word((*string)(&p.fault.Phase))
	case "target":
		return 28, p.word(&p.fault.Target)
	case "detail":
		return 29, p.string(&p.fault.Detail)
	case "lasted_ns":
		return 32, p.duration(&p.fault.Lasted)
	case "affects":
		return 38, p.word(&p.fault.Affects)
	case "class":
		return 35, p.word(&p.fault.Class)
	case "object":
		return 36, p.word(&p.fault.Object)
	case "verb":
		return 37, p.word(&p.fault.Verb)
	case "optional":
		return 40, p.bool(&p.fault.Optional)
	}
	return 0, false
}

func (p *parser) typeWord() bool {
	word, _ := p.raw()
	p.event.Type = typeOf(word)
	return p.event.Type != 0
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
