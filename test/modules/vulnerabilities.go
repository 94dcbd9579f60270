package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// VulnerabilityDatabase is the one of the Go project.
	VulnerabilityDatabase = "https://vuln.go.dev"
	// govulncheck is the program that searches it.
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.8.0"
	// reachTimeout bounds the attempt to reach the database.
	reachTimeout = 15 * time.Second
)

// ErrUnreachable means that no vulnerability was searched for, since the
// database cannot be reached over the network.
var ErrUnreachable = errors.New("the vulnerability database cannot be reached")

// CheckVulnerabilities runs govulncheck on the published modules of the
// repository in root. The database is a URL, of scheme file for a copy
// (https://go.dev/doc/security/vuln/database). The output of govulncheck is written to
// out. The error is ErrUnreachable only if the database sends no response; findings and
// other failures are other errors.
func CheckVulnerabilities(ctx context.Context, root, database string, out io.Writer) error {
	if err := reach(ctx, database); err != nil {
		return err
	}
	published, err := Published(root)
	if err != nil {
		return err
	}
	for _, module := range published {
		fmt.Fprintf(out, "govulncheck in %s\n", module.Dir)
		command := exec.CommandContext(ctx, "go", "run", govulncheck, "-db", database, "./...") //nolint:gosec // our own arguments
		command.Dir = filepath.Join(root, filepath.FromSlash(module.Dir))
		command.Stdout, command.Stderr = out, out
		if err := command.Run(); err != nil {
			return fmt.Errorf("govulncheck in %s: %w", module.Dir, err)
		}
	}
	return nil
}

// reach returns ErrUnreachable if there is no HTTP response from the database.
func reach(ctx context.Context, database string) error {
	address, err := url.Parse(database)
	if err != nil {
		return err
	}
	switch address.Scheme {
	case "file":
		return nil // govulncheck itself fails if there is none
	case "http", "https":
	default:
		return fmt.Errorf("vulnerability database %q: want a URL with the scheme https, http or file", database)
	}
	limited, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodHead, address.JoinPath("index", "db.json").String(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return nil
}
