package suite

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Changes are the files that differ from a commit.
type Changes struct {
	// Since is the abbreviated hash of that commit, empty if there is none: then everything
	// has changed.
	Since string
	files []string
}

// ChangesSinceYesterday returns the changes since the newest commit that is more than a day
// old, also those that are not committed, in the repository of root. Everything has changed
// where there is no such commit, such as in a shallow clone.
func ChangesSinceYesterday(ctx context.Context, root string) (Changes, error) {
	since, err := git(ctx, root, "rev-list", "-1", "--abbrev-commit", "--before=1 day ago", "HEAD")
	if err != nil || since == "" {
		return Changes{}, err
	}
	changed, err := git(ctx, root, "diff", "--name-only", "--no-renames", "-z", since)
	if err != nil {
		return Changes{}, err
	}
	added, err := git(ctx, root, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return Changes{}, err
	}
	split := func(c rune) bool { return c == 0 }
	return Changes{Since: since, files: slices.Concat(strings.FieldsFunc(changed, split), strings.FieldsFunc(added, split))}, nil
}

// Touch returns the packages whose tests depend on what has changed. A file belongs to the
// package in whose folder it is, or in the nearest one above. A file that belongs to none,
// such as go.mod, concerns all packages, but for text in Markdown.
func (c Changes) Touch(all []Package) []Package {
	folders := map[string]bool{}
	for _, p := range all {
		for folder := range p.folders {
			folders[folder] = folder != "."
		}
	}
	var changed []string
	for _, file := range c.files {
		folder := path.Dir(file)
		for folder != "." && !folders[folder] {
			folder = path.Dir(folder)
		}
		if folder == "." && path.Ext(file) == ".md" {
			continue
		}
		changed = append(changed, folder)
	}
	if c.Since == "" || slices.Contains(changed, ".") {
		return all
	}
	product := slices.ContainsFunc(changed, ofProduct)
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool {
		return !p.DependsOn(changed) && (!product || !releases()[p.Path])
	})
}

// ofProduct reports whether a folder is one of the product.
func ofProduct(folder string) bool {
	wing, _, _ := strings.Cut(folder, "/")
	return slices.Contains([]string{"cmd", "fleet", "runner", "collector", "signature", "preflight-sdk", "examples"}, wing)
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...) //nolint:gosec // our own arguments
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(output)), nil
}
