package machineconfig

import (
	"context"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/nodeconfig"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameMachineConfigs = finding.NewName("MachineConfigs",
		"Checks for MachineConfigs that the machine-config-operator of the target does not render, whose operating system image it "+
			"does not update, or whose network configuration RHEL 10 does not support: a finding for each pool and rule. It concerns "+
			"every update. The rules follow the code of the operator from 4.8 to 5.2.")

	reasonExtension = finding.NewReason("ExtensionNotSupported", finding.Explanation{
		Meaning: "MachineConfigs of a pool request extensions that the target does not install.",
		Cause: "Since 4.16 the machine-config-operator renders only the extensions that it knows (pkg/controller/common/helpers.go, " +
			"validateExtensions); before, the machine-config-daemon rejects others on RHEL CoreOS. 4.22 removed wasm.",
		Remedy:  "Remove the extension from the MachineConfig, and wait until the pool is updated.",
		Command: "oc edit machineconfig NAME",
	})
	reasonKernelType = finding.NewReason("KernelTypeNotSupported", finding.Explanation{
		Meaning: "MachineConfigs of a pool request a kernel type that the target does not have.",
		Cause: "The machine-config-operator renders default and realtime, and 64k-pages since 4.15 (pkg/controller/common/" +
			"helpers.go, ValidateMachineConfig).",
		Remedy:  "Set a kernel type that the target has, and wait until the pool is updated.",
		Command: "oc edit machineconfig NAME",
	})
	reasonRunc = finding.NewReason("RuncNotAvailable", finding.Explanation{
		Meaning: "runc is the default container runtime of a pool whose operating system is RHEL 10, which does not include it.",
		Cause: "A ContainerRuntimeConfig or a MachineConfig sets default_runtime in /etc/crio/crio.conf.d/. The " +
			"machine-config-operator of 4.23, 5.0 and later refuses to render such a pool (enhancement block-runc-on-rhcos10-upgrade; " +
			"pkg/controller/render), and no gate blocks the update: the nodes of the pool are not updated.",
		Remedy: "Make crun the default: remove the ContainerRuntimeConfigs and MachineConfigs that set runc, and wait until the " +
			"pool is updated.",
		Command: "oc get containerruntimeconfigs,machineconfigs",
	})
	reasonOSImage = finding.NewReason("OSImageOverridden", finding.Explanation{
		Meaning: "A MachineConfig sets the operating system image of a pool, so an update does not update the operating system.",
		Cause: "Its osImageURL overrides the image of the release. The machine-config-operator then completes an update " +
			"without the image (pkg/operator/status.go), whose kubelet and CRI-O stay as they are.",
		Remedy: "Build the image from the target's image, and set it when the target is reached; or remove osImageURL, so that the " +
			"release decides.",
		Command: "oc get machineconfigs -o custom-columns=NAME:.metadata.name,IMAGE:.spec.osImageURL",
	})
	reasonOSImageAndStream = finding.NewReason("OSImageAndStream", finding.Explanation{
		Meaning: "A MachineConfig sets the operating system image of a pool, and the pool itself sets its stream.",
		Cause:   "The machine-config-operator of 4.22 and later does not render such a pool (pkg/controller/render).",
		Remedy:  "Remove either osImageURL of the MachineConfig or spec.osImageStream of the pool.",
		Command: "oc edit machineconfigpool NAME",
	})

	nameExtensions = reasonExtension.Names("MachineConfigExtensions")
	nameKernelType = reasonKernelType.Names("MachineConfigKernelType")
	nameRuntime    = reasonRunc.Names("MachineConfigRuntime")
	nameOSImage    = reasonOSImage.Names("MachineConfigOSImage")
	nameOSStream   = reasonOSImageAndStream.Names("MachineConfigOSStream")
)

const (
	// osImageOverridden is the annotation of a rendered MachineConfig whose image differs from the release's
	// (machine-config-operator pkg/controller/common, since 4.12).
	osImageOverridden = "machineconfiguration.openshift.io/os-image-url-overridden"
	// generatedBy annotates MachineConfigs of the machine-config-operator; those up to 4.9 set the image of the release.
	generatedBy = "machineconfiguration.openshift.io/generated-by-controller-version"
)

// prebuiltPrefix begins the names of MachineConfigs by which the machine-config-operator itself sets images that it has
// built (pkg/controller/build/constants, since 5.0).
const prebuiltPrefix = "10-prebuiltimage-osimageurl-"

// maxValues bounds a text of a MachineConfig in a message, in bytes.
const maxValues = 200

// withoutPre returns a version without its prerelease: a prerelease of 4.19.0 belongs to 4.19.
func withoutPre(version semver.Version) semver.Version {
	version.Pre = nil
	return version
}

func release(major, minor uint64) semver.Version { return semver.Version{Major: major, Minor: minor} }

// lifetime is from which release to which the machine-config-operator knows something; a zero until is for good.
type lifetime struct{ since, until semver.Version }

func (l lifetime) has(target semver.Version) bool {
	return target.GTE(l.since) && (l.until.EQ(semver.Version{}) || target.LT(l.until))
}

// extensions are the extensions of RHEL CoreOS (machine-config-operator pkg/daemon/update.go,
// getSupportedExtensions, and since 4.16 pkg/controller/common/helpers.go, SupportedExtensions, of the branches
// 4.8 to 5.2).
func extensions() map[string]lifetime {
	always := release(4, 6)
	return map[string]lifetime{
		"usbguard": {since: always}, "kernel-devel": {since: always}, "sandboxed-containers": {since: always},
		"kerberos": {since: release(4, 11)}, "ipsec": {since: release(4, 14)}, "wasm": {since: release(4, 14), until: release(4, 22)},
		"sysstat": {since: release(4, 18)}, "two-node-ha": {since: release(4, 19)},
	}
}

// kernelTypes are the types of kernels (pkg/controller/common/helpers.go, ValidateMachineConfig, of the same branches).
func kernelTypes() map[string]lifetime {
	return map[string]lifetime{"": {}, "default": {}, "realtime": {}, "64k-pages": {since: release(4, 15)}}
}

// newestKnown is the newest release whose machine-config-operator the tables are of.
func newestKnown() semver.Version { return release(5, 2) }

// firstOverridden is the first release in which a MachineConfig can set the image (MergeMachineConfigs), firstRendered the first
// that renders no unknown extension, firstGuarded the first that renders no runc for RHEL 10, and firstWithStreams the first
// that renders either a stream or an image.
func firstOverridden() semver.Version  { return release(4, 12) }
func firstRendered() semver.Version    { return release(4, 16) }
func firstGuarded() semver.Version     { return release(4, 23) }
func firstWithStreams() semver.Version { return release(4, 22) }

// MachineConfigs is the check MachineConfigs.
func MachineConfigs() check.Check {
	return check.Check{
		Name: nameMachineConfigs, Kind: finding.SourceHealth, NotHosted: NotHosted,
		Reads: append(Reads(), check.Get(machineconfigurationv1.GroupName, "osimagestreams", "", "cluster")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			configuration, without, err := readPools(ctx, s)
			if without != nil || err != nil {
				return without, err
			}
			if !configuration.names() {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected,
					"no MachineConfigPool names a rendered MachineConfig")}, nil
			}
			if without, err := configuration.readConfigs(ctx, s); without != nil || err != nil {
				return without, err
			}
			found, err := configuration.judgeContent(ctx, s)
			if err == nil && len(found) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "%s takes the MachineConfigs of %s",
					s.Update.To, words.Count(len(configuration.pools), "MachineConfigPool"))}, nil
			}
			return finding.Bounded(finding.Drafts(found...)), err
		},
	}
}

// judgeContent applies each rule to each pool. If the streams cannot be read, it returns what was found before and the error.
func (c *configuration) judgeContent(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	var found []finding.Finding
	target := withoutPre(s.Update.To)
	for i := range c.pools {
		pool := c.inPool(&c.pools[i], target)
		for _, rule := range []func() (finding.Finding, string){pool.extensions, pool.kernelType, pool.osImage, pool.osStream} {
			if f, name := rule(); name != "" {
				found = append(found, f.Named(name+"-"+pool.Name))
			}
		}
	}
	for _, judge := range []func(context.Context, check.Subject) ([]finding.Finding, error){c.judgeRuntimes, c.judgeNetworks} {
		more, err := judge(ctx, s)
		if found = append(found, more...); err != nil {
			return found, err
		}
	}
	return found, nil
}

// configuredPool is a pool with its MachineConfigs, and the target release.
type configuredPool struct {
	*machineconfigurationv1.MachineConfigPool

	configs  []*snapshot.MachineConfig
	rendered *snapshot.MachineConfig
	target   semver.Version
}

func (c *configuration) inPool(pool *machineconfigurationv1.MachineConfigPool, target semver.Version) *configuredPool {
	return &configuredPool{MachineConfigPool: pool, configs: c.configsOf(pool), rendered: c.renderedOf(pool), target: target}
}

func (p *configuredPool) of(f finding.Finding, configs []string) finding.Finding {
	objects := []finding.Object{poolObject(p.Name)}
	for _, name := range configs {
		objects = append(objects, configObject(name))
	}
	if len(configs) > 0 {
		f = f.Do(finding.Read("oc get machineconfig %s -o yaml", configs[0]))
	}
	return f.Do(finding.Read("oc describe machineconfigpool %s", p.Name)).About(objects...)
}

func (p *configuredPool) extensions() (finding.Finding, string) {
	known, outcome := extensions(), preflight.Fail
	if p.target.LT(firstRendered()) || p.target.GT(newestKnown()) {
		outcome = preflight.Warn // only a daemon on RHEL CoreOS refuses it, or the target is not known
	}
	values, configs := p.refused(func(config *snapshot.MachineConfig) []string {
		var refused []string
		for _, each := range config.Extensions {
			if of, listed := known[each]; !listed || !of.has(p.target) {
				refused = append(refused, each)
			}
		}
		return refused
	})
	if len(values) == 0 {
		return finding.Finding{}, ""
	}
	return p.of(finding.New(outcome, reasonExtension, "the machine-config-operator of %s does not install %s of MachineConfigPool %q: %s",
		p.target, words.Count(len(values), "extension"), p.Name, words.Clauses(values, maxConfigsNamed)), configs), nameExtensions
}

func (p *configuredPool) kernelType() (finding.Finding, string) {
	known, outcome := kernelTypes(), preflight.Fail
	if p.target.GT(newestKnown()) {
		outcome = preflight.Warn
	}
	values, configs := p.refused(func(config *snapshot.MachineConfig) []string {
		if of, listed := known[config.KernelType]; listed && of.has(p.target) {
			return nil
		}
		return []string{config.KernelType}
	})
	if len(values) == 0 {
		return finding.Finding{}, ""
	}
	return p.of(finding.New(outcome, reasonKernelType,
		"the machine-config-operator of %s does not know the kernel of MachineConfigPool %q: %s",
		p.target, p.Name, words.Clauses(values, maxConfigsNamed)), configs), nameKernelType
}

// refused are the values that the target refuses, with the first MachineConfig that has each, and these MachineConfigs. A
// rendered one is named only for what none of its sources has.
func (p *configuredPool) refused(of func(*snapshot.MachineConfig) []string) (clauses, configs []string) {
	seen := map[string]bool{}
	for _, config := range p.configs {
		first := true
		for _, value := range of(config) {
			if seen[value] {
				continue
			}
			seen[value] = true
			clauses = append(clauses, fmt.Sprintf("%s of MachineConfig %s", words.Line(value, maxValues), config.Name))
			if first {
				configs, first = append(configs, config.Name), false
			}
		}
	}
	return clauses, configs
}

// overriding returns the MachineConfigs that set another image than the release's: sources, or else the rendered
// one.
func (p *configuredPool) overriding() []*snapshot.MachineConfig {
	if p.target.LT(firstOverridden()) {
		return nil
	}
	var sources []*snapshot.MachineConfig
	for _, config := range p.configs {
		if config != p.rendered && config.OSImageURL != "" && config.Annotations[generatedBy] == "" &&
			!strings.HasPrefix(config.Name, prebuiltPrefix) {
			sources = append(sources, config)
		}
	}
	if len(sources) == 0 && p.rendered != nil && p.rendered.Annotations[osImageOverridden] == "true" && !p.prebuilt() {
		return []*snapshot.MachineConfig{p.rendered}
	}
	return sources
}

// prebuilt reports whether the image of the pool is one that the machine-config-operator has built.
func (p *configuredPool) prebuilt() bool {
	for _, config := range p.configs {
		if strings.HasPrefix(config.Name, prebuiltPrefix) {
			return true
		}
	}
	return false
}

func (p *configuredPool) osImage() (finding.Finding, string) {
	configs := p.overriding()
	if len(configs) == 0 {
		return finding.Finding{}, ""
	}
	var names, clauses []string
	for _, config := range configs {
		names = append(names, config.Name)
		clauses = append(clauses, fmt.Sprintf("MachineConfig %s sets %s", config.Name, words.Line(config.OSImageURL, maxValues)))
	}
	return p.of(finding.Warn(reasonOSImage, "the update to %s does not update the operating system, the kubelet and CRI-O of the "+
		"nodes of MachineConfigPool %q: %s",
		p.target, p.Name, words.Clauses(clauses, maxConfigsNamed)), names), nameOSImage
}

func (p *configuredPool) osStream() (finding.Finding, string) {
	stream, configs := p.Spec.OSImageStream.Name, p.overriding()
	if stream == "" || len(configs) == 0 || p.target.LT(firstWithStreams()) {
		return finding.Finding{}, ""
	}
	return p.of(finding.Fail(reasonOSImageAndStream, "the machine-config-operator of %s does not render MachineConfigPool %q: "+
		"MachineConfig %s sets its image, and spec.osImageStream of the pool the stream %q",
		p.target, p.Name, configs[0].Name, stream), []string{configs[0].Name}), nameOSStream
}

const (
	runc = "runc"
	// workerPool is the pool whose stream custom pools use; besides it, controlPlanePool and arbiterPool are not
	// custom (machine-config-operator pkg/controller/common, GetEffectiveOSImageStreamName).
	workerPool, controlPlanePool, arbiterPool = "worker", "master", "arbiter"
)

// isRHEL10 reports whether a stream is one without runc (machine-config-operator pkg/osimagestream/streams.go).
func isRHEL10(stream string) bool { return stream == "rhel-10" || stream == "centos-10" }

// judgeRuntimes is about pools with runc. The stream of the cluster is read only where one of them has none of its own.
func (c *configuration) judgeRuntimes(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	target := withoutPre(s.Update.To)
	if target.LT(firstGuarded()) {
		return nil, nil
	}
	var found []finding.Finding
	for i := range c.pools {
		pool := c.inPool(&c.pools[i], target)
		config := pool.withRunc()
		if config == nil {
			continue
		}
		if configs := pool.overriding(); len(configs) > 0 {
			found = append(found, pool.of(finding.Warn(reasonRunc,
				"%s; the image of MachineConfigPool %q comes from MachineConfig %s: if it is RHEL 10, the machine-config-operator of "+
					"%s does not render the pool",
				explainRuntime(config), pool.Name, configs[0].Name, target), []string{config.Name}).Named(nameRuntime+"-"+pool.Name))
			continue
		}
		stream, err := c.streamOf(ctx, s, pool.MachineConfigPool)
		if err != nil {
			return found, err
		}
		if isRHEL10(stream) {
			found = append(found, pool.onRHEL10(config, stream))
		}
	}
	return found, nil
}

// onRHEL10 is about a pool on RHEL 10 with a MachineConfig that sets runc, or of which the runtime is not known.
func (p *configuredPool) onRHEL10(config *snapshot.MachineConfig, stream string) finding.Finding {
	outcome := preflight.Fail
	if config.RuntimeUnread {
		outcome = preflight.Unknown
	}
	return p.of(finding.New(outcome, reasonRunc,
		"%s; MachineConfigPool %q has the stream %q, which has no runc: the machine-config-operator of %s does not render it with runc",
		explainRuntime(config), p.Name, stream, p.target), []string{config.Name}).Named(nameRuntime + "-" + p.Name)
}

func explainRuntime(config *snapshot.MachineConfig) string {
	if config.RuntimeUnread {
		return fmt.Sprintf("whether MachineConfig %s makes runc the default container runtime is unknown: %v", config.Name,
			nodeconfig.ErrUnread)
	}
	return fmt.Sprintf("MachineConfig %s makes runc the default container runtime", config.Name)
}

// withRunc returns the MachineConfig by which runc is, or may be, the default runtime of the pool; nil if there is
// none. The files of a rendered MachineConfig come from all its sources.
func (p *configuredPool) withRunc() *snapshot.MachineConfig {
	mayBe := func(config *snapshot.MachineConfig) bool {
		return config.DefaultRuntime == runc || config.RuntimeUnread
	}
	if p.rendered != nil && p.rendered.DefaultRuntime != "" && !mayBe(p.rendered) {
		return nil
	}
	for _, config := range p.configs { // the rendered one is the last
		if mayBe(config) {
			return config
		}
	}
	return nil
}

// streamOf is the stream of images that a pool is updated to; empty where the cluster has no streams: a cluster that was
// installed as 4.x stays with RHEL 9 (machine-config-operator pkg/osimagestream, GetBuiltinDefaultStreamName).
func (c *configuration) streamOf(ctx context.Context, s check.Subject, pool *machineconfigurationv1.MachineConfigPool) (string, error) {
	if name := pool.Spec.OSImageStream.Name; name != "" {
		return name, nil
	}
	if pool.Name != controlPlanePool && pool.Name != arbiterPool {
		for i := range c.pools {
			if name := c.pools[i].Spec.OSImageStream.Name; c.pools[i].Name == workerPool && name != "" {
				return name, nil
			}
		}
	}
	stream, err := s.Cluster.OSImageStream(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return pool.Status.OSImageStream.Name, nil
	case err != nil:
		return "", fmt.Errorf("could not read the OSImageStream \"cluster\": %w", err)
	case stream.Status.DefaultStream != "":
		return stream.Status.DefaultStream, nil
	}
	return stream.Spec.DefaultStream, nil
}
