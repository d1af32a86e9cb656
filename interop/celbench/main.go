// Kubernetes' own CEL (cel-go with apiserver's environment) beside Keelson's, on the same ten expressions and object:
// `tools/beside.sh cel`.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"keelson/interop/beside"
)

// Ratios that are aimed at.
const (
	wantedCompile  = 5
	wantedEvaluate = 10
)

type cases struct {
	Expressions []string       `json:"expressions"`
	Object      map[string]any `json:"object"`
}

func compile(env *cel.Env, expression string) cel.Program {
	ast, issues := env.Compile(expression)
	beside.Must(issues.Err())
	// As admission policies plan their expressions.
	program, err := env.Program(ast,
		cel.InterruptCheckFrequency(apiservercel.CheckFrequency),
		cel.CostLimit(apiservercel.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}))
	beside.Must(err)
	return program
}

func evaluate(program cel.Program, object map[string]any) {
	result, _, err := program.ContextEval(context.Background(), map[string]any{"object": object})
	beside.Must(err)
	if result.Value() != true {
		beside.Must(fmt.Errorf("an expression is not true"))
	}
}

func main() {
	text, err := os.ReadFile(filepath.Join(beside.Root(), "interop", "celbench", "testdata", "expressions.json"))
	beside.Must(err)
	var given cases
	beside.Must(json.Unmarshal(text, &given))
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	beside.Must(err)
	env := set.StoredExpressionsEnv()

	fmt.Printf("%-16s %12s %12s %8s %10s %8s  %s\n", "operation", "Go ns", "Keelson ns", "ratio", "Go allocs", "bytes", "expression")
	met, rows := 0, 0
	for _, ours := range beside.Run() {
		operation, number, found := strings.Cut(ours.Name, "/")
		if !found {
			continue
		}
		var index, wanted int
		if _, err := fmt.Sscanf(number, "%d", &index); err != nil {
			continue
		}
		expression := given.Expressions[index]
		var work func()
		switch operation {
		case "BM_Compile":
			work, wanted = func() { compile(env, expression) }, wantedCompile
		case "BM_Evaluate":
			program := compile(env, expression)
			work, wanted = func() { evaluate(program, given.Object) }, wantedEvaluate
		default:
			continue
		}
		theirs := beside.Measure(work)
		ratio := theirs.Nanoseconds / ours.Time
		rows++
		mark := ""
		if ratio >= float64(wanted) {
			met++
		} else {
			mark = fmt.Sprintf(" (below %dx)", wanted)
		}
		if len(expression) > 48 {
			expression = expression[:45] + "..."
		}
		fmt.Printf("%-16s %12.0f %12.0f %7.1fx %10.0f %8.0f  %s%s\n", ours.Name, theirs.Nanoseconds, ours.Time, ratio, theirs.Allocations,
			ours.Bytes, expression, mark)
	}
	fmt.Printf("%d of %d as fast as wanted: %dx for compilation, %dx for evaluation\n", met, rows, wantedCompile, wantedEvaluate)
}
