package keelson

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/component-base/featuregate"
)

// Flags that others decide: the features are worked out by Features, the address by Start.
var notOurs = map[string]bool{
	"feature-gates": true, "emulated-version": true, "min-compatibility-version": true, "secure-port": true, "bind-address": true, "v": true, "help": true,
	"advertise-address": true,
}

// Changed lists the flags whose value is no longer the default. `sets` must have been made from fresh options: a flag is bound to a
// field of them, so what a test wrote into the field is the flag's value.
func Changed(sets map[string]*pflag.FlagSet) []string {
	names := make([]string, 0, len(sets))
	for name := range sets {
		names = append(names, name)
	}
	sort.Strings(names)
	var flags []string
	for _, name := range names {
		sets[name].VisitAll(func(f *pflag.Flag) {
			if !notOurs[f.Name] && f.Value.String() != f.DefValue {
				flags = append(flags, render(f)...)
			}
		})
	}
	return flags
}

func render(f *pflag.Flag) []string {
	if f.Value.Type() == "namedCertKey" {
		var flags []string
		for _, value := range strings.Split(strings.Trim(f.Value.String(), "[]"), ";") {
			flags = append(flags, "--"+f.Name+"="+value)
		}
		return flags
	}
	list, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return []string{"--" + f.Name + "=" + f.Value.String()}
	}
	if f.Value.Type() != "stringArray" {
		return []string{"--" + f.Name + "=" + strings.Join(list.GetSlice(), ",")}
	}
	var flags []string
	for _, value := range list.GetSlice() {
		flags = append(flags, "--"+f.Name+"="+value)
	}
	return flags
}

// Joined puts flags in the form --name=value: a name may be followed by its value, and a switch stands alone.
func Joined(flags []string) []string {
	var joined []string
	for i := 0; i < len(flags); i++ {
		flag := flags[i]
		if flag == "" {
			continue
		}
		if strings.HasPrefix(flag, "--") && !strings.Contains(flag, "=") && i+1 < len(flags) && !strings.HasPrefix(flags[i+1], "--") {
			flag += "=" + flags[i+1]
			i++
		}
		joined = append(joined, flag)
	}
	return joined
}

func nameOf(flag string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
	return name
}

// Override is `base` without the flags that `over` names, and then `over`.
func Override(base, over []string) []string {
	named := map[string]bool{}
	for _, flag := range over {
		named[nameOf(flag)] = true
	}
	var flags []string
	for _, flag := range base {
		if !named[nameOf(flag)] {
			flags = append(flags, flag)
		}
	}
	return append(flags, over...)
}

// Without drops the flags with these names.
func Without(flags []string, names ...string) []string {
	var kept []string
	for _, flag := range flags {
		keep := true
		for _, name := range names {
			keep = keep && nameOf(flag) != name
		}
		if keep {
			kept = append(kept, flag)
		}
	}
	return kept
}

// Features is --feature-gates for the gates that differ from their defaults, and --emulated-version if it is not that of the program.
func Features(gate featuregate.MutableVersionedFeatureGate) []string {
	var flags, changed []string
	defaults := gate.DeepCopyAndReset()
	program := compatibility.DefaultKubeEffectiveVersionForTest().BinaryVersion()
	if emulated := gate.EmulationVersion(); !emulated.EqualTo(program) {
		flags = append(flags, fmt.Sprintf("--emulated-version=%d.%d", emulated.Major(), emulated.Minor()), "--runtime-config-emulation-forward-compatible=true")
	}
	for name := range gate.GetAll() {
		if gate.Enabled(name) != defaults.Enabled(name) {
			changed = append(changed, fmt.Sprintf("%s=%v", name, gate.Enabled(name)))
		}
	}
	if len(changed) > 0 {
		sort.Strings(changed)
		flags = append(flags, "--feature-gates="+strings.Join(changed, ","))
	}
	return flags
}
