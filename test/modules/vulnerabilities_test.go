package modules_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/modules"
)

// database has one vulnerability, in a function that the workspace calls.
const database = `
-- index/db.json --
{"modified":"2026-01-31T10:00:00Z"}
-- index/modules.json --
[{"path":"stdlib","vulns":[{"id":"GO-2026-0001","modified":"2026-01-31T10:00:00Z"}]}]
-- index/vulns.json --
[{"id":"GO-2026-0001","modified":"2026-01-31T10:00:00Z"}]
-- ID/GO-2026-0001.json --
{"schema_version":"1.3.1","id":"GO-2026-0001","modified":"2026-01-31T10:00:00Z","published":"2026-01-31T10:00:00Z",
 "summary":"ToUpper is loud","details":"ToUpper is loud.","database_specific":{"url":"https://example.com/GO-2026-0001"},
 "affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
  "ecosystem_specific":{"imports":[{"path":"strings","symbols":["ToUpper"]}]}}]}
`

// empty has none.
const empty = `
-- index/db.json --
{"modified":"2026-01-31T10:00:00Z"}
-- index/modules.json --
[]
-- index/vulns.json --
[]
`

func TestCheckVulnerabilities(t *testing.T) {
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	for name, tc := range map[string]struct {
		reason      string
		database    string
		unreachable bool
		want        string // in the error; no error if empty
		prints      string
	}{
		"None": {
			reason: "a module without a known vulnerability passes", database: fileURL(repository(t, empty)), prints: "No vulnerabilities found.",
		},
		"Found": {
			reason: "a vulnerable function that is called fails", database: fileURL(repository(t, database)),
			want: "govulncheck in lib: exit status", prints: "GO-2026-0001",
		},
		"Unreachable": {
			reason: "a database that cannot be reached is distinguished", database: "http://127.0.0.1:1", unreachable: true,
			want: "connection refused",
		},
		"Broken": {
			reason: "an error response of the database is a failure", database: broken.URL, want: "404 Not Found",
		},
		"Missing": {
			reason: "a copy that does not exist is a failure", database: fileURL(filepath.Join(t.TempDir(), "missing")), want: "govulncheck in .",
		},
		"NoURL": {
			reason: "an invalid URL is a failure", database: "vuln.go.dev", want: `"vuln.go.dev"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var printed bytes.Buffer
			err := modules.CheckVulnerabilities(t.Context(), repository(t, workspace), tc.database, &printed)
			if tc.want == "" && err != nil {
				t.Fatalf("%s: %v\n%s", tc.reason, err, printed.String())
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want an error with %q, got %v\n%s", tc.reason, tc.want, err, printed.String())
			}
			if got := errors.Is(err, modules.ErrUnreachable); got != tc.unreachable {
				t.Errorf("%s: unreachable is %t, want %t: %v", tc.reason, got, tc.unreachable, err)
			}
			if !strings.Contains(printed.String(), tc.prints) {
				t.Errorf("%s: want the output %q, got\n%s", tc.reason, tc.prints, printed.String())
			}
		})
	}
}

func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }
