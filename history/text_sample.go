package history

import (
	"errors"
	"fmt"
	"strings"
)

// textSample reads a line such as "witness n1 1.500 orders owner=a count=1 ttl=2s" without its first word: the node,
// the time, and the key that is held there, if any. A node without role=slave is a master; one that is down has no
// reply.
func textSample(samples []Sample, fields []string) ([]Sample, error) {
	if len(fields) < 2 {
		return nil, errors.New("expected witness NODE TIME [down] [role=slave] [KEY [owner=NAME] [count=N] [ttl=TIME]]")
	}
	at, err := textTime(fields[1])
	if err != nil {
		return nil, err
	}
	s := Sample{Node: fields[0], Sent: at, Time: at, Up: true, Role: "master"}
	key, state := "", KeyState{TTL: -1}
	for _, field := range fields[2:] {
		name, value, isValue := strings.Cut(field, "=")
		switch {
		case field == "down":
			s.Up, s.Role = false, ""
		case name == "role":
			s.Role = value
		case !isValue:
			key = field
		default:
			err = state.set(name, value)
		}
		if err != nil {
			return nil, err
		}
	}
	if key != "" {
		s.Keys = map[string]KeyState{key: state}
	}
	return append(samples, s), nil
}

func (k *KeyState) set(name, value string) (err error) {
	switch name {
	case "owner":
		k.Owner = value
	case "count":
		k.Count, err = nonNegative(value)
	case "ttl":
		k.TTL, err = textTime(value)
	case "readers":
		k.Owners, k.Mode = strings.Split(value, ","), "read"
		k.Owner = k.Owners[0]
	case "permits":
		k.Permits, err = nonNegative(value)
	case "limit":
		k.Limit, err = nonNegative(value)
	default:
		err = fmt.Errorf("unknown field %q of a sample; it has role, owner, count, ttl, readers, permits and limit", name)
	}
	return err
}

// textReceived reads a line such as "received n1 1.500 client=0 dials=2 channels=1 commands=9 key=orders requests=7"
// without its first word: a sample of a master with what one client process has sent so far.
func textReceived(samples []Sample, fields []string) ([]Sample, error) {
	if len(fields) < 2 {
		return nil, errors.New("expected received NODE TIME client=N [dials=N] [channels=N] [commands=N] " +
			"[key=NAME requests=N]")
	}
	at, err := textTime(fields[1])
	if err != nil {
		return nil, err
	}
	key, r := "", Received{}
	numbers := map[string]*int{
		"client": &r.Client, "clients": &r.Clients, "dials": &r.Dials, "open": &r.Open, "channels": &r.Channels,
		"commands": &r.Commands,
	}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		switch into := numbers[name]; {
		case into != nil:
			*into, err = nonNegative(value)
		case name == "key":
			key = value
		case name == "requests" && key != "":
			r.Keys = map[string]int{}
			r.Keys[key], err = nonNegative(value)
		default:
			err = fmt.Errorf("unknown field %q of what was received", name)
		}
		if err != nil {
			return nil, err
		}
	}
	s := Sample{Node: fields[0], Sent: at, Time: at, Up: true, Role: "master", Received: []Received{r}}
	return append(samples, s), nil
}
