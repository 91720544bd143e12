package engine

// match reports whether s matches a pattern of KEYS: * ? [a-z] [^a] and \ .
func match(pattern, s string) bool {
	for len(pattern) > 0 {
		if pattern[0] == '*' {
			for len(pattern) > 1 && pattern[1] == '*' {
				pattern = pattern[1:]
			}
			if len(pattern) == 1 {
				return true
			}
			for i := 0; i <= len(s); i++ {
				if match(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		}
		if len(s) == 0 {
			return false
		}
		ok, n := matchOne(pattern, s[0])
		if !ok {
			return false
		}
		pattern, s = pattern[n:], s[1:]
	}
	return len(s) == 0
}

// matchOne compares one character with the first n characters of a pattern.
func matchOne(pattern string, b byte) (ok bool, n int) {
	switch {
	case pattern[0] == '?':
		return true, 1
	case pattern[0] == '[':
		return matchClass(pattern, b)
	case pattern[0] == '\\' && len(pattern) > 1:
		return pattern[1] == b, 2
	}
	return pattern[0] == b, 1
}

// matchClass matches a class in brackets; an unclosed one extends to the end.
func matchClass(pattern string, b byte) (ok bool, n int) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		lo := pattern[i]
		switch {
		case lo == '\\' && i+1 < len(pattern):
			i++
			ok = ok || pattern[i] == b
		case i+2 < len(pattern) && pattern[i+1] == '-':
			hi := pattern[i+2]
			i += 2
			ok = ok || min(lo, hi) <= b && b <= max(lo, hi)
		default:
			ok = ok || lo == b
		}
	}
	return ok != not, min(i+1, len(pattern))
}
