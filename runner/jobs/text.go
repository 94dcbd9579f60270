package jobs

import (
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// Limits of what is taken over from a pod, in bytes.
const (
	maxMessage = 32 << 10
	maxLine    = 2 << 10
	maxWord    = 128
	maxTail    = 1 << 10
	// tailLines is how many of the last lines of a log make a message.
	tailLines = 10
)

// tail is the last lines of a log, without those of the SDK's frames.
func tail(log string) string {
	lines := strings.Split(words.Lines(words.Last(log, 4*maxTail), 4*maxTail), "\n")
	var kept []string
	for _, text := range lines {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "preflight/") {
			kept = append(kept, text)
		}
	}
	return words.Last(strings.Join(kept[max(0, len(kept)-tailLines):], "\n"), maxTail)
}
