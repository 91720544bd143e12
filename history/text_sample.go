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
