package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// attack is a check that attacks its node, its runner, or other checks.
func attack(ending string) error {
	switch ending {
	case "torrent":
		return torrent()
	case "scratch":
		return os.WriteFile("/scratch/file", make([]byte, 64<<20), 0o600)
	case "swarm":
		return fork(50)
	case "forkbomb":
		return fork(400) // more than a node allows, but not enough to harm it
	case "impostor":
		return forge("ReleaseSignature", "All.Checks", "Animal")
	case "hostile":
		fmt.Println(strings.Repeat(hostile, 1<<14))
		return forge("Animal")
	}
	return fmt.Errorf("unknown attack %q", ending)
}

// hostile clears the screen, sets the title, reorders text and forges a line.
const hostile = "\x1b[2J\x1b]0;title\a\u202e\u2066\u200f\x9b1m\r\nReady: this cluster can be updated\b\x00"

// torrent writes 128 MiB to its log, more than a node keeps, and passes.
func torrent() error {
	block := bytes.Repeat([]byte(strings.Repeat("splash ", 146)+"\n"), 1<<10)
	for range 1 << 7 {
		if _, err := os.Stdout.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// fork starts children that never end.
func fork(count int) error {
	for range count {
		if err := exec.CommandContext(context.Background(), "/bin/preflight", "forever").Start(); err != nil {
			return fmt.Errorf("cannot fork: %w", err)
		}
	}
	return nil
}

// forge writes a termination message that reports a pass of each of these checks.
func forge(names ...string) error {
	result := preflight.Result{State: preflight.StateFinal, RunID: os.Getenv("PREFLIGHT_RUN_ID")}
	for _, name := range names {
		result.Findings = append(result.Findings, preflight.Finding{
			Name: name, Outcome: preflight.Pass, Reason: "Reported", Message: hostile, Remediation: hostile, URL: "https://example.com/" + hostile,
			Objects:  []preflight.Object{{APIVersion: hostile, Kind: hostile, Namespace: hostile, Name: hostile}},
			Evidence: map[string]string{hostile: hostile},
		})
	}
	frame, err := result.Frame(4096)
	if err != nil {
		return err
	}
	return os.WriteFile("/dev/termination-log", frame, 0o600)
}

// foreignToken fails if the API server accepts a token for another audience. It reports
// the token, so that the test can use it after the run.
func foreignToken(ctx context.Context, t *preflight.T) error {
	const file = "/foreign/token"
	if err := requestWith(ctx, file, http.MethodGet, "", ""); err == nil {
		return errors.New("the API server accepts the token")
	} else if !strings.Contains(err.Error(), "401") {
		return err
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	t.Warnf("%s", token)
	return nil
}

// borrow creates a ConfigMap with the token of the Secret "attack", which is mounted, or which the account may read.
func borrow(ctx context.Context) error {
	token, err := os.ReadFile("/attack/token")
	if errors.Is(err, os.ErrNotExist) {
		token, err = tokenOf(ctx, "attack")
	}
	if err != nil {
		return err
	}
	response, err := sendAs(ctx, string(token), http.MethodPost, "/api/v1/namespaces/openshift-zoo/configmaps",
		`{"metadata":{"name":"droppings"}}`)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("the API server responded with status %d", response.StatusCode)
	}
	return nil
}

// tokenOf reads the token in a Secret with the account of the check.
func tokenOf(ctx context.Context, secret string) ([]byte, error) {
	own, err := os.ReadFile(serviceAccount + "token")
	if err != nil {
		return nil, err
	}
	response, err := sendAs(ctx, string(own), http.MethodGet, "/api/v1/namespaces/openshift-zoo/secrets/"+secret, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var content struct {
		Data map[string][]byte `json:"data"`
	}
	err = json.NewDecoder(response.Body).Decode(&content)
	return content.Data["token"], err
}
