// The clients of a simulation. Internal to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "registry/store.h"
#include "simulation/model.h"
#include "simulation/server.h"
#include "simulation/simulation.h"

namespace keelson::simulation {

// Shared state of the clients. `server` is null while it is down; `start` counts its starts: answers of an earlier
// start are lost.
struct Cluster {
  World& world;
  Model& model;
  Statistics& statistics;
  Server* server = nullptr;
  int start = 0;
  bool calm = false;  // no new writes: everything has to settle
  bool burst = false;
  bool trace = false;
  void Say(const std::string& text) const;
};

// One request at a time: writes and reads of objects that all clients share.
class Writer {
 public:
  Writer(Cluster& cluster, int number) : cluster_(cluster), number_(number) {}
  void Begin();  // goes on by itself
  bool busy() const { return waiting_ != 0; }
  void ServerGone();

 private:
  struct Target {
    std::size_t resource;
    std::string name_space, name;
    std::string key;
  };
  void Next();
  void Ask();
  Target Pick();
  void Create(const Target& target);
  void Update(const Target& target, bool patch);
  void Delete(const Target& target);
  void Get(const Target& target);
  void List(const Target& target);
  // Delivery of an answer; false: it was lost, or its client no longer waits.
  bool Answered(int start, std::uint64_t request);
  void Written(std::uint64_t request, int start, WriteID write, const meta::Result<storage::ObjectPtr>& result);

  Cluster& cluster_;
  const int number_;
  std::uint64_t last_request_ = 0;
  std::uint64_t waiting_ = 0;  // the request whose answer is awaited
  WriteID write_ = 0;          // of it
};

// Lists, then watches, and goes on where it was after every loss.
class Informer {
 public:
  Informer(Cluster& cluster, std::size_t resource, std::string name_space, std::string app);
  void Begin();
  void ServerGone();
  bool CaughtUp() const;
  std::string Describe() const;
  void Hurry() { stalled_until_ = Time(0); }

 private:
  void Resume();
  void List();
  void Watch();
  void Listed(int start, meta::Result<storage::ObjectList> list);
  void Opened(int start, meta::Result<std::unique_ptr<storage::WatchStream>> stream);
  void Poll();
  void Take(const storage::WatchEvent& event);
  void Drop(Time again);
  storage::ListOptions Options() const;

  Cluster& cluster_;
  const std::size_t resource_;
  const std::string name_space_;
  const Selection selection_;
  std::optional<Model::Position> position_;
  bool asking_ = false;
  bool initial_ = false;  // the watch sends what there is first
  std::vector<Seen> initial_items_;
  std::unique_ptr<storage::WatchStream> stream_;
  std::uint64_t stream_number_ = 0;
  bool poll_scheduled_ = false;
  Time stalled_until_{0};
};

}  // namespace keelson::simulation
