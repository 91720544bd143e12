package history

import (
	"encoding/json"
	"strconv"
	"time"
)

// AppendJSON appends e to b as one JSON object, without a newline. The result equals encoding/json's, but takes a
// fraction of the time: a simulation writes an event every few microseconds.
func (e *Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, e.Index, 10)
	b = appendInt(b, `,"time":`, int64(e.Time))
	b = append(b, `,"type":"`...)
	b = append(b, e.Type.String()...)
	b = append(b, `","process":`...)
	if e.Process == Nemesis {
		b = append(b, `"nemesis"`...)
	} else {
		b = strconv.AppendInt(b, int64(e.Process), 10)
	}
	b = appendString(append(b, `,"f":`...), e.F)
	if e.Key != "" {
		b = appendString(append(b, `,"key":`...), e.Key)
	}
	if e.Value != nil {
		b = e.Value.appendJSON(append(b, `,"value":`...))
	}
	if e.Error != nil {
		b = appendString(append(b, `,"error":[`...), e.Error.Code)
		b = appendString(append(b, ','), e.Error.Text)
		b = append(b, ']')
	}
	if e.Held {
		b = append(b, `,"held":true`...)
	}
	return append(b, '}')
}

func (v *Value) appendJSON(b []byte) []byte {
	start := len(b) + 1
	b = append(b, '{')
	b = appendField(b, `,"owner":`, v.Owner)
	if v.Token != 0 {
		b = strconv.AppendUint(append(b, `,"token":`...), v.Token, 10)
	}
	if v.Zero {
		b = append(b, `,"zero":true`...)
	}
	b = appendNonZero(b, `,"valid_ns":`, v.Valid)
	b = appendNonZero(b, `,"count":`, time.Duration(v.Count))
	if v.Undone {
		b = append(b, `,"undone":true`...)
	}
	b = appendNonZero(b, `,"lease_ns":`, v.Lease)
	b = appendNonZero(b, `,"age_ns":`, v.Age)
	b = appendNonZero(b, `,"wait_ns":`, v.Wait)
	b = appendNonZero(b, `,"close_ns":`, v.Close)
	b = appendNonZero(b, `,"work_ns":`, v.Work)
	b = appendField(b, `,"mode":`, v.Mode)
	b = appendNonZero(b, `,"permits":`, time.Duration(v.Permits))
	b = appendNonZero(b, `,"limit":`, time.Duration(v.Limit))
	if v.Lapsed {
		b = append(b, `,"lapsed":true`...)
	}
	if v.Part {
		b = append(b, `,"part":true`...)
	}
	if v.Touch != nil {
		b = v.Touch.appendJSON(append(b, `,"touch":`...))
	}
	if v.Fault != nil {
		b = v.Fault.appendJSON(append(b, `,"fault":`...))
	}
	if v.Left != nil {
		left, _ := json.Marshal(v.Left) // never fails
		b = append(append(b, `,"left":`...), left...)
	}
	if len(b) > start { // the first field has a comma in front
		copy(b[start:], b[start+1:])
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

func (t *TouchValue) appendJSON(b []byte) []byte {
	b = appendInt(b, `{"read":`, t.Read)
	b = appendInt(b, `,"found":`, t.Found)
	if t.MaxSeen != 0 {
		b = strconv.AppendUint(append(b, `,"max_seen":`...), t.MaxSeen, 10)
	}
	if t.Fenced {
		b = append(b, `,"fenced":true`...)
	}
	return append(b, '}')
}

func (f *FaultValue) appendJSON(b []byte) []byte {
	b = appendInt(b, `{"id":`, int64(f.ID))
	b = appendString(append(b, `,"phase":`...), string(f.Phase))
	b = appendField(b, `,"target":`, f.Target)
	b = appendField(b, `,"detail":`, f.Detail)
	b = appendNonZero(b, `,"lasted_ns":`, f.Lasted)
	b = appendField(b, `,"affects":`, f.Affects)
	b = appendField(b, `,"class":`, f.Class)
	b = appendField(b, `,"object":`, f.Object)
	b = appendField(b, `,"verb":`, f.Verb)
	if f.Optional {
		b = append(b, `,"optional":true`...)
	}
	return append(b, '}')
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

func appendNonZero(b []byte, name string, n time.Duration) []byte {
	if n == 0 {
		return b
	}
	return appendInt(b, name, int64(n))
}

func appendField(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, name...), s)
}

// appendString quotes s; anything but plain ASCII is left to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if !plain(s[i]) {
			quoted, _ := json.Marshal(s) // never fails
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain reports whether c needs no escape in a JSON string.
func plain(c byte) bool {
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'
}
