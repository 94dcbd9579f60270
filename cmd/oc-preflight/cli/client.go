// Package cli answers: how does a command reach the cluster and the user?
//
// [Client] has the flags of the connection, the streams and the log. Connect makes the
// clients of the cluster, and Review checks the permissions of a command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/signature/localfile"
)

// Client reaches the cluster that the user's flags name.
type Client struct {
	flags *connection
	// archives are the paths of --archive, which replaces the cluster.
	archives []string
	// opened are the archives that were opened, and reported the lines about them.
	opened    []*archive.Archive
	reported  map[string]bool
	Streams   genericiooptions.IOStreams
	Verbosity int
	// Quiet shows no progress.
	Quiet bool
	Log   *slog.Logger
	// Roles has what each command declares.
	Roles role.List
}

// New returns a client that reaches the cluster of flags, which it adds to the flags of a
// command.
func New(flags *pflag.FlagSet, streams genericiooptions.IOStreams) *Client {
	c := &Client{flags: newConnection(flags), Streams: streams}
	flags.IntVarP(&c.Verbosity, "v", "v", 0,
		"Log level: 4 logs the steps of a run, 6 each request to the cluster as well, 8 with its content.")
	option.Declare(flags, option.Option{Effect: option.OnDisplay, Again: option.Never}, "v")
	return c
}

// ArchiveFlag is --archive of a command that only reads the cluster. When the command has ended, files
// that turned out to be unreadable meanwhile are listed on standard error.
func (c *Client) ArchiveFlag(verb *cobra.Command) {
	verb.Flags().StringArrayVar(&c.archives, "archive", nil,
		"Archive of the cluster to read instead of the cluster: a must-gather, the directory of \"oc adm inspect\", an archive of the "+
			"insights-operator or lists of \"oc get -o yaml\", as a directory, .tar, .tar.gz, .tar.xz or .zip. May be repeated for "+
			"archives of the same cluster.")
	option.Declare(verb.Flags(), option.Option{Group: option.Target, Effect: option.OnClusters, Again: option.Reaching}, "archive")
	run := verb.RunE
	if run == nil {
		return
	}
	verb.RunE = func(called *cobra.Command, args []string) error {
		err := run(called, args)
		if reportErr := errors.Join(reportLeftOut(c), reportOthers(c)); err == nil {
			err = reportErr
		}
		return err
	}
}

// Archived reports whether an archive replaces the cluster.
func (c *Client) Archived() bool { return len(c.archives) > 0 }

// Subject names the evaluated cluster for a report that people read: the archives, or the API server and the context.
func Subject(c *Client) string {
	if c.Archived() {
		return "archive " + strings.Join(c.archives, ", ")
	}
	if c.checkFiles() != nil {
		return "" // Connect reports it
	}
	return c.flags.subject()
}

// Connect makes the clients. It sends no request.
func (c *Client) Connect() (*cluster.Cluster, error) {
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
	reached, err := cluster.Connect(config, userAgent())
	if err != nil {
		return nil, fmt.Errorf("the connection to the cluster is not configured: %w", err)
	}
	return reached, nil
}

// archiveGCPercent is Go's default. An archive is parsed by a process that ends then: collecting its
// garbage as often as a run takes half as much time again, and saves 20 of 130 MiB.
const archiveGCPercent = 100

// Open makes the clients of a command with ArchiveFlag: of the archives, or as Connect does.
// Files of an archive that cannot be read are listed on standard error.
func (c *Client) Open(ctx context.Context) (*cluster.Cluster, error) {
	if !c.Archived() {
		return c.Connect()
	}
	defer c.Waiting("reading the archive")()
	program.CollectGarbage(archiveGCPercent)
	opened, err := archive.Open(ctx, c.archives...)
	if err != nil {
		return nil, fmt.Errorf("--archive: %w", err)
	}
	return c.connectArchive(ctx, opened)
}

// OpenArchives makes clients of each archive by itself, in the order of the flags.
func OpenArchives(ctx context.Context, c *Client) ([]*cluster.Cluster, error) {
	defer c.Waiting("reading the archives")()
	program.CollectGarbage(archiveGCPercent)
	var all []*cluster.Cluster
	for _, path := range c.archives {
		opened, err := archive.Open(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("--archive %s: %w", path, err)
		}
		connected, err := c.connectArchive(ctx, opened)
		if err != nil {
			return nil, err
		}
		all = append(all, connected)
	}
	return all, nil
}

// Archives are the paths of the archives, in the order of the flags.
func Archives(c *Client) []string { return slices.Clone(c.archives) }

// OpenHosted makes the clients of both clusters of archives, dumps of HyperShift; the guest is nil where they have none
// of the hosted cluster of that name.
func (c *Client) OpenHosted(ctx context.Context, name string, archives ...string) (management, guest *cluster.Cluster, err error) {
	defer c.Waiting("reading the archive")()
	program.CollectGarbage(archiveGCPercent)
	above, below, err := archive.OpenHosted(ctx, name, archives...)
	if err != nil {
		return nil, nil, fmt.Errorf("--archive: %w", err)
	}
	if management, err = c.connectArchive(ctx, above); err != nil || below == nil {
		return management, nil, err
	}
	guest, err = c.connectArchive(ctx, below)
	return management, guest, err
}

// connectArchive makes the clients of an archive, and lists what could not be read.
func (c *Client) connectArchive(ctx context.Context, opened *archive.Archive) (*cluster.Cluster, error) {
	about := opened.About()
	c.Log.InfoContext(ctx, "the archive replaces the cluster", "kind", about.Kind, "root", about.Root, "cluster", about.ClusterID, "time",
		about.Time)
	c.opened = append(c.opened, opened)
	if err := reportLeftOut(c); err != nil {
		return nil, err
	}
	return cluster.ConnectAt(opened.Config(), userAgent(), opened.Now())
}

// reportLeftOut lists the files of archives that could not be read so far, each once.
func reportLeftOut(c *Client) error {
	for _, each := range c.opened {
		for _, file := range each.About().LeftOut {
			if c.reported[file] {
				continue
			}
			if c.reported == nil {
				c.reported = map[string]bool{}
			}
			c.reported[file] = true
			if _, err := fmt.Fprintf(c.Streams.ErrOut, "not read: %s\n", words.Printable(file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportOthers counts the files of archives that could not be read, and are too many to be listed.
func reportOthers(c *Client) error {
	more := 0
	for _, each := range c.opened {
		more += each.About().LeftOutMore
	}
	if more == 0 {
		return nil
	}
	_, err := fmt.Fprintf(c.Streams.ErrOut, "not read: %s\n", words.Count(more, "other file"))
	return err
}

// ConnectTo makes the clients of a cluster that no flag selects.
func ConnectTo(config *rest.Config) (*cluster.Cluster, error) {
	return cluster.Connect(config, userAgent())
}

// ConnectFile makes the clients of the cluster of a kubeconfig, with the limits of the kubeconfig of
// the flags.
func ConnectFile(path string) (*cluster.Cluster, error) {
	config, err := loadFile(path, &clientcmd.ConfigOverrides{})
	if err != nil {
		return nil, err
	}
	return ConnectTo(config)
}

// userAgent is sent with every request.
func userAgent() string { return "oc-preflight/" + program.Version() }

// notConfigured names the kubeconfigs that do not exist.
func (c *Client) notConfigured() error {
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
// read in bounded time and memory. Other errors come from client-go.
func (c *Client) checkFiles() error {
	loader := c.flags.config()
	for _, path := range loader.ConfigAccess().GetLoadingPrecedence() {
		if err := checkFile(path); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	}
	config, err := loader.RawConfig()
	if err != nil {
		return err
	}
	return errors.Join(checkReferenced(config), checkOverrides(c.flags.overrides))
}

// checkOverrides is checkFiles for the files that flags name.
func checkOverrides(flags *clientcmd.ConfigOverrides) error {
	var errs []error
	for name, path := range map[string]string{
		clientcmd.FlagCAFile: flags.ClusterInfo.CertificateAuthority, clientcmd.FlagCertFile: flags.AuthInfo.ClientCertificate,
		clientcmd.FlagKeyFile: flags.AuthInfo.ClientKey,
	} {
		if err := checkFile(path); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// checkReferenced is checkFiles for the files that a kubeconfig names.
func checkReferenced(config clientcmdapi.Config) error {
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
func (c *Client) named() bool {
	config, err := c.flags.config().RawConfig()
	if err != nil || len(config.Clusters) > 0 || c.flags.overrides.ClusterInfo.Server != "" {
		return true
	}
	_, err = rest.InClusterConfig()
	return err == nil
}

// Review reports all permissions of a command that are missing. An API server that
// does not respond delays it for seconds.
func (c *Client) Review(ctx context.Context, reached *cluster.Cluster, needs access.Needs) error {
	defer c.Waiting("reviewing the permissions")()
	return needs.Check(ctx, reached.Kubernetes.AuthorizationV1())
}

// StartLog sends the log of this program and of client-go, which uses klog, to
// standard error. Without verbosity there is none: what client-go retries is shown
// as progress and findings instead.
func (c *Client) StartLog() {
	c.Log = slog.New(slog.DiscardHandler)
	if c.Verbosity > 0 {
		c.Log = slog.New(slog.NewTextHandler(c.Streams.ErrOut, &slog.HandlerOptions{Level: slog.Level(-c.Verbosity)}))
	}
	program.LogTo(c.Log, c.Verbosity)
}

// QuietFlag is --quiet of a command that shows progress.
func (c *Client) QuietFlag(verb *cobra.Command) {
	verb.Flags().BoolVar(&c.Quiet, "quiet", false, "Show no progress on standard error, only errors and what requires action.")
	option.Declare(verb.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "quiet")
}

// Display shows progress, unless it is unwanted: live lines on a terminal, unless a log is written there
// too.
func (c *Client) Display(about terminal.About) terminal.Display {
	switch {
	case c.Quiet:
		return terminal.Silent()
	case c.Verbosity > 0:
		return terminal.NewPlain(c.Streams.ErrOut)
	}
	return terminal.New(c.Streams.ErrOut, about)
}

// Waiting shows a step that takes more than stateTime. The returned function ends it, and may
// be called again.
func (c *Client) Waiting(step string) func() {
	var mutex sync.Mutex
	var shown terminal.Display
	timer := time.AfterFunc(terminal.StateTime, func() {
		mutex.Lock()
		defer mutex.Unlock()
		shown = c.Display(terminal.About{})
		shown.Step(step)
	})
	return func() {
		if timer.Stop() {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		if shown != nil {
			shown.Close()
			shown = nil
		}
	}
}

// Requester is who makes the requests of a command, and where.
type Requester struct {
	// User is the name that the API server gives; empty where it is unknown.
	User string
	// Server is the URL of the API server; empty where it is unknown.
	Server string
}

// RequesterOf asks the API server which user the flags of a client select. Nothing is known of an archive.
func RequesterOf(ctx context.Context, c *Client) Requester {
	if c.Archived() {
		return Requester{}
	}
	reached, err := c.Connect()
	if err != nil {
		return Requester{}
	}
	return Requester{User: access.User(ctx, reached.Kubernetes), Server: reached.Config().Host}
}
