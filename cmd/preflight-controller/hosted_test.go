package main

import (
	"io"
	"strings"
	"testing"
)

// Hosted clusters are off by default, and their flags are checked together.
func TestHostedFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off":      {reason: "there is nothing to check"},
		"On":       {reason: "the policies need verdicts", args: []string{"--hosted-clusters=20", "--hosted-runs=3", "--hosted-admission=Deny"}},
		"Many":     {reason: "the policies have a limited size", args: []string{"--hosted-clusters=101"}, want: "--hosted-clusters is 101"},
		"NoRuns":   {reason: "nothing would be checked", args: []string{"--hosted-clusters=1", "--hosted-runs=0"}, want: "--hosted-runs is 0"},
		"Mode":     {reason: "the mode is named", args: []string{"--hosted-clusters=1", "--hosted-admission=Audit"}, want: `--hosted-admission is "Audit"`},
		"ModeOnly": {reason: "each update would be refused", args: []string{"--hosted-admission=Warn"}, want: "needs --hosted-clusters"},
	} {
		f, err := parse(tc.args, nil, io.Discard)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: want %q, got %v", name, tc.reason, tc.want, err)
		}
		if name == "Off" && (f.hosted.clusters != 0 || f.hosted.admission != "") {
			t.Errorf("%s: %+v", tc.reason, f.hosted)
		}
	}
}
