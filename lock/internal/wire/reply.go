package wire

import "fmt"

// CodeOK is the code of a script that executed the request. A negative code is the reason why it did not.
const CodeOK = 1

// Reply is the result of a script.
type Reply struct {
	Code  int64
	Value int64 // of a lone integer
	List  []any // of a list, without its code; nil: the reply is a lone integer
}

// Decode reads the reply of any script. A code that is not negative comes with at least n integers. A
// reply that cannot be read leaves the outcome of its request unknown.
func Decode(raw any, n int) (Reply, error) {
	r := Reply{Code: CodeOK}
	switch v := raw.(type) {
	case int64:
		r.Value = v
		if v < 0 {
			r.Code = v
		}
		if n <= 1 || v < 0 {
			return r, nil
		}
	case []any:
		if len(v) == 0 {
			break
		}
		code, ok := v[0].(int64)
		r.Code, r.List = code, v[1:]
		if ok && (code < 0 || r.integers(n)) {
			return r, nil
		}
	}
	return Reply{}, &Error{Outcome: Unknown, Err: fmt.Errorf("malformed reply %v, want a code and %d integers", raw, n)}
}

// integers reports whether the first n values are integers.
func (r Reply) integers(n int) bool {
	if len(r.List) < n {
		return false
	}
	for _, v := range r.List[:n] {
		if _, ok := v.(int64); !ok {
			return false
		}
	}
	return true
}

// Int is value i; 0: the reply has no such integer.
func (r Reply) Int(i int) int64 {
	if r.List == nil && i == 0 {
		return r.Value
	}
	if i >= len(r.List) {
		return 0
	}
	n, _ := r.List[i].(int64)
	return n
}

// Text is value i as a text; empty: the reply has none.
func (r Reply) Text(i int) string {
	if i >= len(r.List) {
		return ""
	}
	s, _ := r.List[i].(string)
	return s
}
