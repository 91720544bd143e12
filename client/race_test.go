//go:build race

package client

// raceDetector: memory is not what it would be.
const raceDetector = true
