package manifestpolicy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// confinement has the fields that the security contexts of pods and containers share.
type confinement struct {
	selinux  *corev1.SELinuxOptions
	seccomp  *corev1.SeccompProfile
	apparmor *corev1.AppArmorProfile
	windows  *corev1.WindowsSecurityContextOptions
}

// confinementViolations follow the level "baseline" of Kubernetes' Pod Security Standards.
func confinementViolations(path string, c confinement) []Violation {
	const unconfined = "a preflight may not run unconfined"
	var fields []field
	if c.selinux != nil {
		fields = append(
			fields,
			field{"seLinuxOptions.type", !slices.Contains(SELinuxTypes(), c.selinux.Type), fmt.Sprintf("a preflight may not run with SELinux type %q", c.selinux.Type)},
			field{"seLinuxOptions.user", c.selinux.User != "", "a preflight may not set the SELinux user"},
			field{"seLinuxOptions.role", c.selinux.Role != "", "a preflight may not set the SELinux role"},
		)
	}
	if c.seccomp != nil {
		fields = append(fields, field{"seccompProfile.type", c.seccomp.Type == corev1.SeccompProfileTypeUnconfined, unconfined})
	}
	if c.apparmor != nil {
		fields = append(fields, field{"appArmorProfile.type", c.apparmor.Type == corev1.AppArmorProfileTypeUnconfined, unconfined})
	}
	if c.windows != nil {
		const domain = "a preflight may not use an account of the Windows domain"
		fields = append(
			fields,
			field{"windowsOptions.hostProcess", isTrue(c.windows.HostProcess), "a preflight may not run on the host"},
			field{"windowsOptions.gmsaCredentialSpec", c.windows.GMSACredentialSpec != nil, domain},
			field{"windowsOptions.gmsaCredentialSpecName", c.windows.GMSACredentialSpecName != nil, domain},
		)
	}
	return violationsOf(reasonRefusedPodSecurity, path, fields)
}

// SELinuxTypes are the types of processes that a manifest may have; the empty one is that of the runtime.
func SELinuxTypes() []string {
	return []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
}

// Confined reports whether a manifest may have these SELinux options.
func Confined(selinux corev1.SELinuxOptions) bool {
	return len(confinementViolations("", confinement{selinux: &selinux})) == 0
}
