//go:build race

package client

// raceDetector: limits on memory do not apply.
const raceDetector = true
