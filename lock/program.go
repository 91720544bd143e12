package lock

import (
	"crypto/sha1"
	"encoding/hex"
)

// script is a Lua program and the digest under which servers cache it.
type script struct{ *scriptText }

type scriptText struct {
	source, digest string
	name           any // digest, as the word of a command
}

// makeScript is the program of a source.
func makeScript(source string) script {
	sum := sha1.Sum([]byte(source))
	digest := hex.EncodeToString(sum[:])
	return script{&scriptText{source: source, digest: digest, name: digest}}
}
