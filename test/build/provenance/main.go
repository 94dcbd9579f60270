// Provenance prints how the files of a release were built, as an in-toto statement with the SLSA v1
// predicate (https://slsa.dev/spec/v1.0/provenance). Its subjects are the files that SHA256SUMS of the
// directory names, each of which is read and compared. "make sign" signs it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

const (
	predicateType = "https://slsa.dev/provenance/v1"
	// repository is where the sources are, and buildType what "make release" does with them.
	repository = "https://github.com/openshift/update-preflight"
	buildType  = repository + "/blob/main/CONTRIBUTING.md#release"
	// checksums is the file with the names of a release's files, according to .goreleaser.yaml, and
	// metadata what goreleaser writes about the build.
	checksums, metadata = "SHA256SUMS", "metadata.json"
)

// predicate is the part of the SLSA predicate that this build knows.
type predicate struct {
	BuildDefinition definition `json:"buildDefinition"`
	RunDetails      details    `json:"runDetails"`
}

type definition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []resource        `json:"resolvedDependencies"`
}

type resource struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

type details struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

func main() {
	builder := flag.String("builder", "", "URI of who built the release, such as that of the workflow")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *builder, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run writes the statement about the files of a release in a directory. The commit that the release was built from must
// be checked out.
func run(ctx context.Context, out io.Writer, builder string, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: provenance -builder URI DIRECTORY")
	}
	if id, err := url.Parse(builder); err != nil || !id.IsAbs() {
		return fmt.Errorf("the builder %q is no URI; name who builds, such as the workflow: make sign "+
			"BUILDER=https://github.com/OWNER/NAME/.github/workflows/release.yaml", builder)
	}
	subjects, err := subjectsOf(args[0])
	if err != nil {
		return err
	}
	commit, err := commitOf(ctx, args[0])
	if err != nil {
		return err
	}
	made := predicate{BuildDefinition: definition{
		BuildType:          buildType,
		ExternalParameters: map[string]string{"repository": repository, "command": "make release"},
		ResolvedDependencies: []resource{
			{URI: "git+" + repository, Digest: map[string]string{"gitCommit": commit}},
		},
	}}
	made.RunDetails.Builder.ID = builder
	text, err := attestation.Encode(subjects, predicateType, made)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// subjectsOf are the files of a release. One that is missing, or that has another checksum, is an error.
func subjectsOf(directory string) ([]attestation.Subject, error) {
	text, err := os.ReadFile(filepath.Join(directory, checksums)) //nolint:gosec // the caller names the directory
	if err != nil {
		return nil, fmt.Errorf("%w; build the release first: make release", err)
	}
	var subjects []attestation.Subject
	for line := range strings.Lines(string(text)) {
		sum, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !found || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: the line %q is not CHECKSUM  FILE", checksums, line)
		}
		content, err := os.ReadFile(filepath.Join(directory, name)) //nolint:gosec // a local name
		if err != nil {
			return nil, err
		}
		if actual := sha256.Sum256(content); hex.EncodeToString(actual[:]) != sum {
			return nil, fmt.Errorf("%s is not the file of %s: its checksum differs; build the release again: make release", name, checksums)
		}
		subjects = append(subjects, attestation.Subject{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	if len(subjects) == 0 {
		return nil, fmt.Errorf("%s names no file", checksums)
	}
	return subjects, nil
}

// commitOf returns the commit that a release was built from, which goreleaser recorded. Another commit that is checked
// out is an error, and so are files that differ from it: the release may have been built from them.
func commitOf(ctx context.Context, directory string) (string, error) {
	text, err := os.ReadFile(filepath.Join(directory, metadata)) //nolint:gosec // the caller names the directory
	if err != nil {
		return "", fmt.Errorf("%w; build the release first: make release", err)
	}
	var built struct {
		Commit string `json:"commit"`
	}
	if err := json.Unmarshal(text, &built); err != nil {
		return "", fmt.Errorf("%s: %w", metadata, err)
	}
	head, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if built.Commit != head {
		return "", fmt.Errorf("the release was built from commit %q, and %s is checked out; build the release again: make release",
			built.Commit, head)
	}
	changed, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("the sources differ from commit %s:\n%s\ncommit them, and build the release again: make release", head, changed)
	}
	return head, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // our own arguments
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}
