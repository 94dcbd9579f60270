package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const workflow = "https://github.com/openshift/update-preflight/.github/workflows/release.yaml"

// sources is a repository with one commit, in which the test runs, and dist a directory with files of a release.
func sources(t *testing.T, files map[string]string) (dist string) {
	t.Helper()
	t.Chdir(t.TempDir())
	dist = t.TempDir()
	var sums strings.Builder
	for name, content := range files {
		sum := sha256.Sum256([]byte(content))
		sums.WriteString(hex.EncodeToString(sum[:]) + "  " + name + "\n")
		write(t, filepath.Join(dist, name), content)
	}
	write(t, filepath.Join(dist, checksums), sums.String())
	write(t, "main.go", "package main\n")
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message=x"},
	} {
		if text, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	built(t, dist, head(t))
	return dist
}

// built writes what goreleaser records about a build.
func built(t *testing.T, dist, commit string) {
	t.Helper()
	write(t, filepath.Join(dist, metadata), `{"project_name": "preflight", "version": "1.2.3", "commit": "`+commit+`"}`)
}

// head returns the commit that is checked out.
func head(t *testing.T) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The statement names each file of the release by its checksum, the commit, and who built it.
func TestStatement(t *testing.T) {
	dist := sources(t, map[string]string{"oc-preflight_linux_amd64.tar.gz": "a program"})
	var out bytes.Buffer
	if err := run(t.Context(), &out, workflow, []string{dist}); err != nil {
		t.Fatal(err)
	}
	var stated struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
		Predicate predicate `json:"predicate"`
	}
	if err := json.Unmarshal(out.Bytes(), &stated); err != nil {
		t.Fatal(err)
	}
	if stated.Type != "https://in-toto.io/Statement/v1" || stated.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("type %q, predicate %q", stated.Type, stated.PredicateType)
	}
	sum := sha256.Sum256([]byte("a program"))
	if len(stated.Subject) != 1 || stated.Subject[0].Name != "oc-preflight_linux_amd64.tar.gz" ||
		stated.Subject[0].Digest["sha256"] != hex.EncodeToString(sum[:]) {
		t.Errorf("subjects %+v", stated.Subject)
	}
	commit, built := head(t), stated.Predicate
	if dependencies := built.BuildDefinition.ResolvedDependencies; len(dependencies) != 1 ||
		dependencies[0].Digest["gitCommit"] != commit {
		t.Errorf("the sources are %+v, want commit %s", dependencies, commit)
	}
	if built.RunDetails.Builder.ID != workflow {
		t.Errorf("the builder is %q", built.RunDetails.Builder.ID)
	}
}

// Nothing is stated about files that were not built from the commit.
func TestRefusals(t *testing.T) {
	release := map[string]string{"program.tar.gz": "a program"}
	for name, tc := range map[string]struct {
		reason  string
		files   map[string]string
		builder string
		change  func(t *testing.T, dist string)
		want    string
	}{
		"Changed": {
			reason: "a file was replaced after the build", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				write(t, filepath.Join(dist, "program.tar.gz"), "another program")
			}, want: "its checksum differs",
		},
		"Missing": {
			reason: "a file was removed after the build", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dist, "program.tar.gz")); err != nil {
					t.Fatal(err)
				}
			}, want: "no such file",
		},
		"NotBuilt": {
			reason: "there is no release", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dist, checksums)); err != nil {
					t.Fatal(err)
				}
			}, want: "make release",
		},
		"AnotherCommit": {
			reason: "the release was built before the commit that is checked out", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				built(t, dist, strings.Repeat("a", 40))
			}, want: "was built from commit \"" + strings.Repeat("a", 40),
		},
		"NoCommit": {
			reason: "what it was built from is unknown", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				built(t, dist, "")
			}, want: `was built from commit ""`,
		},
		"NoMetadata": {
			reason: "what it was built from is unknown", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dist, metadata)); err != nil {
					t.Fatal(err)
				}
			}, want: "make release",
		},
		"BadMetadata": {
			reason: "what it was built from is unknown", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				write(t, filepath.Join(dist, metadata), "commit: x")
			}, want: metadata,
		},
		"Empty": {reason: "a statement about nothing verifies nothing", want: "names no file"},
		"Outside": {
			reason: "a name leads out of the directory", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				write(t, filepath.Join(dist, checksums), strings.Repeat("0", 64)+"  ../program\n")
			}, want: "CHECKSUM  FILE",
		},
		"Line": {
			reason: "another format", files: release,
			change: func(t *testing.T, dist string) {
				t.Helper()
				write(t, filepath.Join(dist, checksums), "SHA256 (program.tar.gz) = 0\n")
			}, want: "CHECKSUM  FILE",
		},
		"Uncommitted": {
			reason: "the commit does not have the sources", files: release,
			change: func(t *testing.T, _ string) {
				t.Helper()
				write(t, "main.go", "package other\n")
			}, want: "main.go",
		},
		"Untracked": {
			reason: "a new file may be part of the build", files: release,
			change: func(t *testing.T, _ string) {
				t.Helper()
				write(t, "other.go", "package main\n")
			}, want: "other.go",
		},
		"NoBuilder": {reason: "who built it decides whether it is trusted", files: release, builder: "none", want: "is no URI"},
	} {
		t.Run(name, func(t *testing.T) {
			dist := sources(t, tc.files)
			if tc.change != nil {
				tc.change(t, dist)
			}
			builder := workflow
			if tc.builder != "" {
				builder = tc.builder
			}
			var out bytes.Buffer
			if err := run(t.Context(), &out, builder, []string{dist}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
			if out.Len() > 0 {
				t.Errorf("%s: it states %s", tc.reason, out.String())
			}
		})
	}
}
