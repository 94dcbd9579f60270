package html

import (
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxActions bounds the commands of a finding.
const maxActions = 20

// Remedy is what to do about a finding; nothing if it does not count.
func Remedy(f finding.Finding) []Block {
	if f.Bypass != nil {
		return nil
	}
	var blocks []Block
	if f.Remediation != "" {
		blocks = append(blocks, Paragraph{Lead: "Fix:", Text: f.Remediation})
	}
	for _, action := range f.Actions[:min(len(f.Actions), maxActions)] {
		if action.Command != "" {
			blocks = append(blocks, Command{Text: action.Command})
		}
	}
	return blocks
}

// LevelOf is the shape of a finding.
func LevelOf(f finding.Finding) Level {
	switch {
	case f.Bypass != nil:
		return Neutral
	case f.Outcome == preflight.Fail && f.Blocks:
		return Bad
	case f.Outcome == preflight.Unknown:
		return Unclear
	case f.Outcome == preflight.Warn, f.Outcome == preflight.Fail:
		return Caution
	case f.Outcome == preflight.Pass:
		return Good
	}
	return Neutral
}
