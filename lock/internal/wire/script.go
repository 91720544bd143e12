package wire

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua program and the digest under which servers cache it.
type Script struct{ *scriptText }

type scriptText struct {
	source, digest string
	Name           any // digest, as the word of a command
}

// NewScript is the program of a source.
func NewScript(source string) Script {
	sum := sha1.Sum([]byte(source))
	digest := hex.EncodeToString(sum[:])
	return Script{&scriptText{source: source, digest: digest, Name: digest}}
}
