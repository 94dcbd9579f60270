package document

import "io"

// Mark is a result: a word, with a level that gives it its shape and color.
type Mark struct {
	Level Level
	Word  string
}

// Level is the shape and color of a result, which always has a word too.
type Level string

// The levels.
const (
	Good    Level = "good"
	Bad     Level = "bad"
	Unclear Level = "unclear"
	Caution Level = "caution"
	Neutral Level = "neutral"
)

// Drawing is written as SVG.
type Drawing interface {
	Render(w io.Writer) error
}
