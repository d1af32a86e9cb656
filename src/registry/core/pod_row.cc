// A pod's line of kubectl get.
#include "registry/cells.h"
#include "registry/core/pod.h"
#include "registry/fields.h"

namespace keelson::registry::core {
namespace {

// Summary of the containers' statuses.
struct Summary {
  std::string reason;
  std::int64_t restarts = 0;
  std::string_view last_restart;  // the latest, "" for none
  int ready = 0;
  std::size_t total = 0;
};

bool ConditionTrue(Value status, std::string_view type) {
  for (const Value condition : status["conditions"].items()) {
    if (Text(condition, "type") == type) return Text(condition, "status") == "True";
  }
  return false;
}

std::string TerminatedReason(Value terminated, std::string_view prefix) {
  std::string text(prefix);
  if (!Text(terminated, "reason").empty()) return text.append(Text(terminated, "reason"));
  if (Int(terminated, "signal") != 0) return text + "Signal:" + std::to_string(Int(terminated, "signal"));
  return text + "ExitCode:" + std::to_string(Int(terminated, "exitCode"));
}

// Times in canonical text compare as text.
void KeepLatest(std::string_view& latest, Value status) {
  const std::string_view finished = Text(status["lastState"]["terminated"], "finishedAt");
  if (finished > latest) latest = finished;
}

// True while the pod still initializes.
bool SummarizeInit(Value pod, Summary& summary, Summary& sidecars) {
  const Value spec = pod["spec"];
  NameSet sidecar_names;
  for (const Value container : spec["initContainers"].items()) {
    if (Text(container, "restartPolicy") == "Always") sidecar_names.emplace(Text(container, "name"));
  }
  std::size_t index = 0;
  for (const Value status : pod["status"]["initContainerStatuses"].items()) {
    const std::size_t i = index++;
    const bool sidecar = sidecar_names.contains(Text(status, "name"));
    const Value state = status["state"];
    summary.restarts += Int(status, "restartCount");
    KeepLatest(summary.last_restart, status);
    if (sidecar) {
      sidecars.restarts += Int(status, "restartCount");
      KeepLatest(sidecars.last_restart, status);
    }
    if (IsSet(state, "terminated") && Int(state["terminated"], "exitCode") == 0) continue;
    if (sidecar && Bool(status, "started")) {
      summary.ready += Bool(status, "ready") ? 1 : 0;
      continue;
    }
    if (IsSet(state, "terminated")) {
      summary.reason = TerminatedReason(state["terminated"], "Init:");
    } else if (const std::string_view waiting = Text(state["waiting"], "reason");
               !waiting.empty() && waiting != "PodInitializing") {
      summary.reason = "Init:" + std::string(waiting);
    } else {
      summary.reason = "Init:" + std::to_string(i) + "/" + std::to_string(spec["initContainers"].size());
    }
    return true;
  }
  return false;
}

void SummarizeContainers(Value pod, Summary& summary) {
  bool running = false;
  std::string error;
  const auto statuses = pod["status"]["containerStatuses"].items();
  for (std::size_t i = statuses.size(); i-- > 0;) {
    const Value status = statuses[i], state = status["state"];
    summary.restarts += Int(status, "restartCount");
    KeepLatest(summary.last_restart, status);
    if (!Text(state["waiting"], "reason").empty()) {
      summary.reason = Text(state["waiting"], "reason");
    } else if (IsSet(state, "terminated")) {
      summary.reason = TerminatedReason(state["terminated"], "");
      if (Int(state["terminated"], "exitCode") != 0) error = summary.reason;
    } else if (Bool(status, "ready") && IsSet(state, "running")) {
      running = true;
      ++summary.ready;
    }
  }
  if (summary.reason != "Completed") return;
  if (running && ConditionTrue(pod["status"], "Ready")) {
    summary.reason = "Running";
  } else if (!error.empty()) {
    summary.reason = error;
  } else if (running) {
    summary.reason = "NotReady";
  }
}

Summary Summarize(Value pod) {
  const Value status = pod["status"], spec = pod["spec"];
  const std::string_view phase = Text(status, "phase");
  Summary summary;
  summary.reason = Text(status, "reason").empty() ? phase : Text(status, "reason");
  summary.total = spec["containers"].size();
  for (const Value container : spec["initContainers"].items())
    summary.total += Text(container, "restartPolicy") == "Always" ? 1 : 0;
  for (const Value condition : status["conditions"].items()) {
    if (Text(condition, "type") == "PodScheduled" && Text(condition, "reason") == "SchedulingGated")
      summary.reason = "SchedulingGated";
  }
  Summary sidecars;
  if (!SummarizeInit(pod, summary, sidecars) || ConditionTrue(status, "Initialized")) {
    summary.restarts = sidecars.restarts;  // finished init containers no longer count
    summary.last_restart = sidecars.last_restart;
    SummarizeContainers(pod, summary);
  }
  if (IsSet(pod["metadata"], "deletionTimestamp")) {
    if (Text(status, "reason") == "NodeLost") {
      summary.reason = "Unknown";
    } else if (phase != "Failed" && phase != "Succeeded") {
      summary.reason = "Terminating";
    }
  }
  return summary;
}

std::string_view OrNone(std::string_view text) { return text.empty() ? "<none>" : text; }

std::string ReadinessGates(Value pod) {
  const Value gates = pod["spec"]["readinessGates"];
  if (gates.empty()) return "<none>";
  std::size_t open = 0;
  for (const Value gate : gates.items()) open += ConditionTrue(pod["status"], Text(gate, "conditionType")) ? 1 : 0;
  return std::to_string(open) + "/" + std::to_string(gates.size());
}

}  // namespace

void PodRow(base::Arena& arena, const base::Clock& clock, Value pod, Value cells) {
  const Summary summary = Summarize(pod);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty()) {
    restarts += " (" + Age(clock, Value(summary.last_restart)) + " ago)";
  }
  Row(arena, cells)
      .Name(pod)
      .Add(std::to_string(summary.ready) + "/" + std::to_string(summary.total))
      .Add(summary.reason)
      .Add(restarts)
      .Age(clock, pod)
      .Add(OrNone(Text(pod["status"]["podIPs"][std::size_t{0}], "ip")))
      .Add(OrNone(Text(pod["spec"], "nodeName")))
      .Add(OrNone(Text(pod["status"], "nominatedNodeName")))
      .Add(ReadinessGates(pod));
}

Value PodRowConditions(base::Arena& arena, Value pod) {
  const std::string_view phase = Text(pod["status"], "phase");
  if (phase != "Succeeded" && phase != "Failed") return {};
  Value condition = Value::Map(arena, 4);
  condition.Set(arena, "type", "Completed");
  condition.Set(arena, "status", "True");
  condition.Set(arena, "reason", Value(phase));
  condition.Set(arena, "message", phase == "Succeeded" ? "The pod has completed successfully." : "The pod failed.");
  Value conditions = Value::List(arena, 1);
  conditions.Append(arena, condition);
  return conditions;
}

}  // namespace keelson::registry::core
