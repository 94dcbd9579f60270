package main

import (
	"io"
	"strings"
	"testing"
)

func TestConsoleFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off":       {reason: "the console has no links"},
		"Downloads": {reason: "a mirror", args: []string{"--cli-downloads=https://mirror.example.com/preflight"}},
		"HTTP":      {reason: "the API of the console accepts https only", args: []string{"--cli-downloads=http://mirror.example.com"}, want: "--cli-downloads: it must be https://"},
		"Both":      {reason: "all errors are stated", args: []string{"--hosted-runs=0", "--cli-downloads=x"}, want: "--hosted-runs is 0; it must be 1 to 10\n--cli-downloads: "},
	} {
		_, err := parse(tc.args, nil, io.Discard)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: want %q, got %v", name, tc.reason, tc.want, err)
		}
	}
}
