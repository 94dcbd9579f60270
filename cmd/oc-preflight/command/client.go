package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/signature/localfile"
)

// client reaches the cluster that the user's flags name.
type client struct {
	flags     *connection
	streams   genericiooptions.IOStreams
	verbosity int
	// quiet shows no progress.
	quiet bool
	log   *slog.Logger
}

// connect makes the clients. It sends no request.
func (c *client) connect() (*cluster.Cluster, error) {
	if err := c.checkFiles(); err != nil {
		return nil, fmt.Errorf("the connection to the cluster is not configured: %w", err)
	}
	config, err := c.flags.config().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the connection to the cluster is not configured: %w", err)
	}
	if !c.named() {
		return nil, c.notConfigured()
	}
	reached, err := cluster.Connect(config, "oc-preflight/"+program.Version())
	if err != nil {
		return nil, fmt.Errorf("the connection to the cluster is not configured: %w", err)
	}
	return reached, nil
}

// notConfigured names the kubeconfigs that do not exist.
func (c *client) notConfigured() error {
	errs := []string{"no cluster is configured: run oc login, or name a kubeconfig with --kubeconfig or KUBECONFIG"}
	for _, path := range c.flags.config().ConfigAccess().GetLoadingPrecedence() {
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, err.Error())
		}
	}
	return errors.New(strings.Join(errs, "; "))
}

// maxConfigFile bounds a kubeconfig and each file that it names, in bytes.
const maxConfigFile = 16 << 20

// checkFiles returns an error for a kubeconfig, or a file that it names, that client-go cannot
// read in bounded time and memory. Other errors are those of client-go.
func (c *client) checkFiles() error {
	for _, path := range c.flags.config().ConfigAccess().GetLoadingPrecedence() {
		if err := checkFile(path); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	}
	config, err := c.flags.config().RawConfig()
	if err != nil {
		return err
	}
	var errs []error
	for name, named := range config.Clusters {
		if err := checkFile(named.CertificateAuthority); err != nil {
			errs = append(errs, fmt.Errorf("certificate authority of the cluster %q: %w", name, err))
		}
	}
	for name, user := range config.AuthInfos {
		for _, path := range []string{user.ClientCertificate, user.ClientKey, user.TokenFile} {
			if err := checkFile(path); err != nil {
				errs = append(errs, fmt.Errorf("credentials of the user %q: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkFile returns an error for a file that is not a regular one, or too large. The null
// device is an empty file.
func checkFile(path string) error {
	if path == "" || path == os.DevNull {
		return nil
	}
	file, err := localfile.OpenRegular(path)
	if errors.Is(err, localfile.ErrNotRegular) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // client-go reads it, or does not need it
	}
	info, err := file.Stat()
	if err == nil && info.Size() > maxConfigFile {
		err = fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), maxConfigFile)
	}
	return errors.Join(err, file.Close())
}

// named is false when no kubeconfig, flag or ServiceAccount names a cluster:
// client-go would connect to localhost:8080.
func (c *client) named() bool {
	config, err := c.flags.config().RawConfig()
	if err != nil || len(config.Clusters) > 0 || c.flags.overrides.ClusterInfo.Server != "" {
		return true
	}
	_, err = rest.InClusterConfig()
	return err == nil
}

// review reports all permissions of a command that are missing. An API server that
// does not respond delays it for seconds.
func (c *client) review(ctx context.Context, reached *cluster.Cluster, needs access.Needs) error {
	defer c.waiting("reviewing the permissions")()
	return needs.Check(ctx, reached.Kubernetes.AuthorizationV1())
}

// startLog sends the log of this program and of client-go, which uses klog, to
// standard error. Without verbosity there is none: what client-go retries is shown
// as progress and findings instead.
func (c *client) startLog() {
	c.log = slog.New(slog.DiscardHandler)
	if c.verbosity > 0 {
		c.log = slog.New(slog.NewTextHandler(c.streams.ErrOut, &slog.HandlerOptions{Level: slog.Level(-c.verbosity)}))
	}
	program.LogTo(c.log, c.verbosity)
}

// quietFlag is --quiet of a command that shows progress.
func (c *client) quietFlag(verb *cobra.Command) {
	verb.Flags().BoolVar(&c.quiet, "quiet", false, "Show no progress on standard error; errors and what requires action are shown.")
}

// display shows progress, unless it is unwanted: live lines on a terminal, unless a log is written there
// too.
func (c *client) display(about about) display {
	switch {
	case c.quiet:
		return silent{}
	case c.verbosity > 0:
		return newPlain(c.streams.ErrOut)
	}
	return newDisplay(c.streams.ErrOut, about)
}

// waiting shows a step that takes more than stateTime. The returned function ends it.
func (c *client) waiting(step string) func() {
	var mutex sync.Mutex
	var shown display
	timer := time.AfterFunc(stateTime, func() {
		mutex.Lock()
		defer mutex.Unlock()
		shown = c.display(about{})
		shown.step(step)
	})
	return func() {
		if timer.Stop() {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		if shown != nil {
			shown.close()
		}
	}
}
